"""Warehouses with invented results, for tests of what reads them."""

import cmath
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import product
from math import exp, log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import pyarrow as pa
from empty_warehouse import empty_warehouse
from invented_importance import IMPORTANCE
from tiny import FOLDER

from headstream.models.nodes import Head
from headstream.tasks.results.claims import insert_claims
from headstream.tasks.results.tables import table_schema

TOKENS_PER_STEP = 4096
STEPS = [0, 1, 4, 16, 64, 150, 300, 420, 560, 760, 1220]
N_CTX = 64
D_MODEL, D_HEAD = 64, 8
COUNTED = {"unigram_loss_nats": 5.0, "bigram_loss_nats": 3.0}  # what the invented models have learned to beat
SCORES = ["induction_random_period", "induction_natural", "prefix_matching", "previous_token", "duplicate_token"]
SCORES += ["bos_attention", "positional_share_without_bos", "entropy_without_bos"]


@dataclass(frozen=True)
class Model:
    """A model that never was: its last head matches prefixes, the first one looks at the token before.

    With two layers or more, the keys of the last head read the first one, as much as `composed` says. It can do
    without `spare` of its heads.
    """

    n_layers: int = 2
    n_heads: int = 4
    seed: int = 0
    cell: str = ""
    induction: float = 0.35
    previous_token: float = 0.64
    repeat_gain: float = 1.5
    loss: float = 2.3
    composed: float = 0.4
    spare: int = 3
    failure: str | None = None
    passage: Sequence[str] = ("<|bos|>", *("def", "·", "f", "(", "x", ")", "\\n") * 2)

    @property
    def name(self) -> str:
        return f"{self.n_layers}L{self.n_heads}H" if self.n_layers else "0L"

    @cached_property
    def place(self) -> str:
        return " ".join(f"n_layers={self.n_layers} n_heads={self.n_heads} {self.cell} seed={self.seed}".split())

    @cached_property
    def model_id(self) -> str:
        return f"{self.name}-s{self.seed}-{crc32(self.place.encode()):08x}"

    @cached_property
    def heads(self) -> list[Head]:
        return [Head(layer, head) for layer in range(self.n_layers) for head in range(self.n_heads)]

    @cached_property
    def pairs(self) -> list[tuple[Head, Head]]:
        return [(earlier, later) for earlier in self.heads for later in self.heads if earlier.layer < later.layer]

    @cached_property
    def circuit(self) -> tuple[Head, Head] | None:
        return (self.heads[0], self.heads[-1]) if self.pairs else None


def write_warehouse(path: Path, *models: Model, without: Collection[str] = (), **named: str) -> Path:
    """A warehouse that holds one study, with its claims decided.

    A `table` or `table.column` in `without` stays empty; `named` may be the name of the study and its question.
    """
    path.write_bytes(_warehouse(models, True, frozenset(without), **named))
    return path


def write_measurements(path: Path, *models: Model, without: Collection[str] = (), **named: str) -> Path:
    """As `write_warehouse`, for tests that ask for no claims: to decide these takes most of the time."""
    path.write_bytes(_warehouse(models, False, frozenset(without), **named))
    return path


@lru_cache(maxsize=4)  # of 20 MB each
def _warehouse(
    models: Sequence[Model],
    decided: bool,
    without: Collection[str],
    study: str = "invented",
    question: str = "Does it?",
) -> bytes:
    with TemporaryDirectory(dir=FOLDER.name) as folder:
        path = Path(folder) / "w.duckdb"
        with empty_warehouse(path) as connection:
            connection.begin()  # one write to the disk instead of one for every table
            for name, rows in _tables(models, study, question).items():
                if rows and name not in without:
                    kept = [field for field in table_schema(name) if f"{name}.{field.name}" not in without]
                    connection.register("invented", pa.Table.from_pylist(rows, schema=pa.schema(kept)))
                    connection.execute(f"INSERT INTO {name} BY NAME FROM invented")
                    connection.unregister("invented")
            if decided:
                insert_claims(connection)
            connection.commit()
        return path.read_bytes()


def _tables(models: Sequence[Model], study: str, question: str) -> dict[str, list[dict[str, Any]]]:
    day = datetime(2026, 1, 2)
    trained = [model for model in models if not model.failure]
    return {
        "studies": [
            {
                "study": study,
                "question": question,
                "config": json.dumps({"name": study, "grid": {"seed": [0]}, "model": {"d_model": None}}),
                "git_commit": "0123456789ab",
                "headstream_version": "0.1.0",
                "started_at": day.replace(hour=3),
                "finished_at": day.replace(hour=4),
                "n_models": len(models),
                "n_failed": len(models) - len(trained),
            }
        ],
        "study_models": [
            {
                "study": study,
                "model_id": model.model_id,
                "cell": model.place,
                "status": "failed" if model.failure else "trained",
                "failure": model.failure,
            }
            for model in models
        ],
        "corpora": [{"corpus_id": "c", "source": "python-stdlib", "documents": 596, "bytes": 11_000_000} | COUNTED],
        "models": [_model(model) for model in trained],
        "training": [row for model in trained for row in _training(model)],
        "evaluations": [_evaluation(model, step) for model in trained for step in STEPS],
        "position_losses": [row for model in trained for row in _position_losses(model)],
        "repeat_losses": [row for model in trained for row in _repeat_losses(model)],
        "heads": [row for model in trained for step in STEPS for row in _heads(model, step)],
        "attention_samples": [row for model in trained for row in _attention(model)],
        **{
            name: [{"model_id": model.model_id, **row} for model in trained for row in rows_of(model)]
            for name, rows_of in (CIRCUITS | IMPORTANCE).items()
        },
    }


def _model(model: Model) -> dict[str, Any]:
    return {
        "model_id": model.model_id,
        "corpus_id": "c",
        "name": model.name,
        "n_layers": model.n_layers,
        "n_heads": model.n_heads,
        "heads_per_layer": [model.n_heads] * model.n_layers,
        "total_heads": len(model.heads),
        "d_model": D_MODEL,
        "feed_forward": "none",
        "seed": model.seed,
        "tokens": TOKENS_PER_STEP * STEPS[-1],
        "parameters": 131_072 + 65_536 * model.n_layers,
        "seconds": 20.0 + 20 * model.n_layers,
        "tokens_per_second": 250_000 / (1 + model.n_layers),
        "device": "cpu",
        "precision": "float32",
        "threads": 1,
        "repeats_fraction": 0.0,
        "final_train_loss_nats": model.loss - 0.02,
    }


def _progress(step: int, middle: float = 420, width: float = 0.25) -> float:
    """From 0 to 1 over the training, steepest at a step."""
    return 0.0 if step == 0 else 1 / (1 + exp(-log(step / middle) / width))


def _loss(model: Model, step: int) -> float:
    return 6.2 - (6.2 - model.loss) * (0.7 * _progress(step, 60, 0.8) + 0.3 * _progress(step, 420, 0.4))


def _training(model: Model) -> list[dict[str, Any]]:
    steps = range(20, STEPS[-1] + 1, 40)
    return [
        {
            "model_id": model.model_id,
            "step": step,
            "tokens": step * TOKENS_PER_STEP,
            "loss_nats": _loss(model, step) + 0.05 * ((step * 7919 % 13) / 6 - 1),
        }
        for step in steps
    ]


def _evaluation(model: Model, step: int) -> dict[str, Any]:
    return {
        "model_id": model.model_id,
        "step": step,
        "tokens": step * TOKENS_PER_STEP,
        "validation_loss_nats": model.loss if step == STEPS[-1] else _loss(model, step),
        "validation_loss_sem_nats": 0.02,
        "n_windows": 256,
        "n_documents": 40,
        "train_loss_nats": model.loss - 0.02 if step == STEPS[-1] else None,
        "in_context_learning_nats": -0.5 * _progress(step),
        "repeat_gain_nats": model.repeat_gain * (1.0 if step == STEPS[-1] else _progress(step)),
        "repeat_gain_sem_nats": 0.05,
    }


def _position_losses(model: Model) -> list[dict[str, Any]]:
    return [
        {
            "model_id": model.model_id,
            "step": STEPS[-1],
            "position": position,
            "loss_nats": model.loss + (0.2 + 0.4 * model.n_layers) / (1 + position) ** 0.7,
        }
        for position in range(N_CTX)
    ]


def _repeat_losses(model: Model) -> list[dict[str, Any]]:
    return [
        {
            "model_id": model.model_id,
            "step": STEPS[-1],
            "occurrence": occurrence,
            "loss_nats": 6.3 - model.repeat_gain * (1 - exp(1 - occurrence)),
        }
        for occurrence in range(1, 9)
    ]


def _heads(model: Model, step: int) -> list[dict[str, Any]]:
    rows = []
    for layer, head in model.heads:
        scores = {score: 0.02 + 0.03 * ((layer * 5 + head * 3 + i) % 7) / 7 for i, score in enumerate(SCORES)}
        scores |= {"entropy_without_bos": 0.8, "prefix_matching_sem": 0.01}
        done = 1.0 if step == STEPS[-1] else _progress(step)
        if (layer, head) == model.heads[-1]:
            scores["induction_random_period"] = 0.01 + (model.induction - 0.01) * done
            scores["prefix_matching"] = 0.01 + (min(1, 1.5 * model.induction) - 0.01) * done
            scores |= {"induction_copying_logit": 3.0 * done, "induction_copying_logit_sem": 0.1}
        if (layer, head) == model.heads[0]:
            scores["previous_token"] = 0.01 + (model.previous_token - 0.01) * _progress(step, 150)
            if step == STEPS[-1]:
                scores["previous_token"] = model.previous_token
        scores |= {"copying_eigenvalues": _copying(model, Head(layer, head)), "matching_eigenvalues": 0.1}
        scores |= {"ov_rank": D_HEAD, "ov_effective_rank": 6.5, "qk_rank": D_HEAD, "qk_effective_rank": 5.5}
        scores |= {"persistence": 0.9}
        rows.append({"model_id": model.model_id, "step": step, "layer": layer, "head": head, **scores})
    return rows


def _attention(model: Model) -> list[dict[str, Any]]:
    """Uniform attention, but for a last head that attends to what followed the current token, half a passage ago."""
    n, rows = len(model.passage), []
    for layer, head in model.heads:
        for query in range(n):
            target = query - n // 2 + 1
            finds = (layer, head) == model.heads[-1] and target > 0
            for key in range(query + 1):
                rows.append(
                    {
                        "model_id": model.model_id,
                        "layer": layer,
                        "head": head,
                        "query": query,
                        "key": key,
                        "query_token": model.passage[query],
                        "key_token": model.passage[key],
                        "weight": float(key == target) if finds else 1 / (query + 1),
                    }
                )
    return rows


def _copying(model: Model, head: Head) -> float:
    return 0.95 if head == model.heads[-1] else -0.2


def _pair(writer: Head, reader: Head) -> dict[str, int]:
    names = ("writer_layer", "writer_head", "reader_layer", "reader_head")
    return dict(zip(names, (*writer, *reader), strict=True))


def _compositions(model: Model) -> Iterator[dict[str, Any]]:
    """At chance, but for the circuit's keys; all pairs at the last checkpoint, the circuit at every one."""
    chance, sd = 1 / D_MODEL, 0.004
    for step in STEPS:
        for i, (pair, kind) in enumerate(product(model.pairs, "QKV")):
            is_circuit = (pair, kind) == (model.circuit, "K")
            if step != STEPS[-1] and not is_circuit:
                continue
            square = chance + sd * ((i * 7 % 11) / 5 - 1)
            if is_circuit:
                done = 1.0 if step == STEPS[-1] else _progress(step, 300)
                square = (chance**0.5 + (model.composed - chance**0.5) * done) ** 2
            z = (square - chance) / sd
            yield {
                **_pair(*pair),
                "step": step,
                "kind": kind,
                "score": square**0.5,
                "null_mean": chance,
                "null_sd": sd,
                "z": z,
                "significant": z > 5,
                "matching_eigenvalues": (0.98 if is_circuit else 0.1) if kind == "K" else None,
            }


def _causal_checks(model: Model) -> Iterator[dict[str, Any]]:
    """Only the circuit's keys matter, if they read anything."""
    for pair, kind in product(model.pairs, "QKV"):
        matters = (pair, kind) == (model.circuit, "K") and model.composed > 0.2
        score = model.induction if pair[1] == model.heads[-1] else 0.02
        yield {**_pair(*pair), "kind": kind, **_effects(score, matters)}


def _joint_checks(model: Model) -> Iterator[dict[str, Any]]:
    """The last head's keys read the first head, which is a writer if it attends to the token before and is read."""
    for layer, head in model.heads:
        for kind in "KQ" if layer else "":
            reads = kind == "K" and (layer, head) == model.heads[-1] and model.composed > 0.2
            reads = reads and model.previous_token >= 0.3
            row = {"reader_layer": layer, "reader_head": head, "kind": kind, "writers": ["L0H0"] if reads else []}
            yield row | (_effects(model.induction, True) if reads else {})


def _effects(score: float, matters: bool) -> dict[str, float]:
    """What a check finds: nine tenths of a score are lost where it matters."""
    left = 0.1 if matters else 1.0
    return {
        "prefix_matching": min(1, 1.5 * score),
        "prefix_matching_without": left * min(1, 1.5 * score),
        "induction_random_period": score,
        "induction_random_period_without": left * score,
        "loss_effect_nats": 0.2 if matters else 0.001,
    }


def _score_terms(model: Model) -> Iterator[dict[str, Any]]:
    """Position, but for the last head, whose keys read the first one."""
    for layer, head in model.heads:
        shares = {("distance", "distance", "position"): 0.8, ("embedding", "embedding", "direct"): 0.2}
        if layer and (layer, head) == model.heads[-1]:
            shares = {
                ("distance", "distance", "position"): 0.2,
                ("embedding", "embedding", "direct"): 0.15,
                ("embedding", "L0H0", "K"): 0.5,
                ("L0H0", "embedding", "Q"): 0.2,
                ("L0H0", "L0H0", "QK"): -0.05,
            }
        for (query, key, composition), share in shares.items():
            place = {"layer": layer, "head": head, "query_source": query, "key_source": key}
            yield {"step": STEPS[-1], **place, "composition": composition, "share": share, "covariance": share}
        untrained = {"query_source": "embedding", "key_source": "embedding", "composition": "direct"}
        yield {"step": STEPS[0], "layer": layer, "head": head, **untrained, "share": 1.0, "covariance": 0.1}


def _path_terms(model: Model) -> Iterator[dict[str, Any]]:
    effects: dict[tuple[str, ...], float] = {(str(head),): 0.3 - 0.05 * head.head for head in model.heads}
    effects |= {tuple(map(str, pair)): 0.02 for pair in model.pairs}
    for order in range(model.n_layers + 1):
        yield {"term": f"order {order}", "term_order": order, "loss_effect_nats": 2 / 4**order}
    for path, effect in effects.items():
        yield {"term": " > ".join(path), "term_order": len(path), "heads": list(path), "loss_effect_nats": effect}


def _virtual_heads(model: Model) -> Iterator[dict[str, Any]]:
    for writer, reader in model.pairs:
        place = dict(zip(("first_layer", "first_head", "second_layer", "second_head"), (*writer, *reader), strict=True))
        yield {**place, "loss_effect_nats": 0.02, "logit_share": 0.01, "copying_eigenvalues": 0.3, "ov_norm": 1.0}


def _eigenvalues(model: Model) -> Iterator[dict[str, Any]]:
    """On a spiral; to the right where a head copies or matches."""
    for layer, head in model.heads:
        for circuit in ("OV", "QK", "K-composed")[: 3 if layer else 2]:
            to_the_right = (layer, head) == model.heads[-1] and circuit != "QK"
            for rank in range(D_HEAD):
                value = cmath.rect(8.0 - rank, 0 if to_the_right else (rank + 1) // 2 * (-1) ** rank)
                place = {"layer": layer, "head": head, "circuit": circuit, "rank": rank}
                writer = {"writer_layer": 0, "writer_head": 0} if circuit == "K-composed" else {}
                yield {**place, **writer, "real": value.real, "imaginary": value.imag}


def _skip_trigrams(model: Model) -> Iterator[dict[str, Any]]:
    """Each head copies, is right and has a bug, in the tokens of the passage."""
    tokens = [*model.passage] * 2
    for step, (layer, head) in product((STEPS[0], STEPS[-1]), model.heads):
        for rank, (output, probability, is_bug) in enumerate(((1, 0.5, False), (3, 0.0, True), (5, 0.0, False))):
            yield {
                "step": step,
                "layer": layer,
                "head": head,
                "rank": rank,
                "source": tokens[1 + rank],
                "destination": tokens[4],
                "output": tokens[output],
                "qk_effect": 2.0 - rank / 2,
                "ov_effect": 3.0,
                "n_pairs": 100,
                "corpus_probability": probability,
                "output_probability": 0.01,
                "is_bug": is_bug,
                "other_destination": tokens[5] if is_bug else None,
                "other_output": tokens[6] if is_bug else None,
            }


def _subspaces(model: Model) -> Iterator[dict[str, Any]]:
    for step, pair, kind in product((STEPS[0], STEPS[-1]), model.pairs, "QKV"):
        overlap = 0.3 if step and (pair, kind) == (model.circuit, "K") else 0.125
        yield {"step": step, **_pair(*pair), "kind": kind, "overlap": overlap, "random_overlap": 0.125}


def _bigrams(model: Model) -> Iterator[dict[str, Any]]:
    explained = 0.98 - 0.2 * model.n_layers
    yield {
        "unigram_loss_nats": 5.0,
        "bigram_loss_nats": 3.0,
        "direct_loss_nats": 5 - 2 * explained,
        "explained_share": explained,
        "correlation": 0.9,
        "gap_coefficient": -0.4 if model.n_layers else None,
        "linearised": False,
    }


def _bigram_samples(model: Model) -> Iterator[dict[str, Any]]:
    for rank in range(20):
        text = {"source": model.passage[rank % 8], "target": model.passage[(rank + 1) % 8]}
        values = {"log_probability_nats": rank / 10 - 1, "direct_logit": rank / 10 - 1 + 0.1 * (rank % 3)}
        yield {"rank": rank, **text, **values, "n_pairs": 1000 - 40 * rank}


def _identities(model: Model) -> Iterator[dict[str, Any]]:
    yield {"identity": "paths-sum", "difference": 8e-7 * model.n_layers}
    if model.heads:
        yield {"identity": "source-decides", "difference": 2e-15}


CIRCUITS: dict[str, Callable[[Model], Iterator[dict[str, Any]]]] = {
    "compositions": _compositions,
    "causal_checks": _causal_checks,
    "joint_checks": _joint_checks,
    "score_terms": _score_terms,
    "path_terms": _path_terms,
    "virtual_heads": _virtual_heads,
    "eigenvalues": _eigenvalues,
    "skip_trigrams": _skip_trigrams,
    "subspaces": _subspaces,
    "bigrams": _bigrams,
    "bigram_samples": _bigram_samples,
    "identities": _identities,
}
