"""Warehouses with invented results, for tests of what reads them."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import exp, log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import duckdb

from tasks.tables import quoted, write_table
from tasks.warehouse import create_tables_and_views

TOKENS_PER_STEP = 4096
STEPS = [0, 1, 4, 16, 64, 150, 300, 420, 560, 760, 1220]
N_CTX = 64
SCORES = ["induction_random_period", "induction_natural", "prefix_matching", "previous_token", "duplicate_token"]
SCORES += ["bos_attention", "positional_share_without_bos", "entropy_without_bos"]


@dataclass(frozen=True)
class Model:
    """A model that never was: its last head matches prefixes, the first one looks at the token before."""

    n_layers: int = 2
    n_heads: int = 4
    seed: int = 0
    cell: str = ""
    induction: float = 0.35
    previous_token: float = 0.64
    repeat_gain: float = 1.5
    loss: float = 2.3
    failure: str | None = None
    passage: Sequence[str] = ("<|bos|>", *("def", "·", "f", "(", "x", ")", "\\n") * 2)

    @property
    def name(self) -> str:
        return f"{self.n_layers}L{self.n_heads}H" if self.n_layers else "0L"

    @property
    def place(self) -> str:
        return " ".join(f"n_layers={self.n_layers} n_heads={self.n_heads} {self.cell} seed={self.seed}".split())

    @property
    def model_id(self) -> str:
        return f"{self.name}-s{self.seed}-{crc32(self.place.encode()):08x}"

    @property
    def heads(self) -> list[tuple[int, int]]:
        return [(layer, head) for layer in range(self.n_layers) for head in range(self.n_heads)]


def write_warehouse(
    path: Path, *models: Model, study: str = "invented", question: str = "Does it?", without: Collection[str] = ()
) -> Path:
    """A warehouse that holds one study; a `table` or `table.column` in `without` stays empty."""
    with TemporaryDirectory() as folder, duckdb.connect() as connection:
        connection.execute(f"ATTACH {quoted(str(path))} AS built")
        connection.execute("USE built")
        create_tables_and_views(connection)
        for name, rows in _tables(models, study, question).items():
            if rows and name not in without:
                kept = [{k: v for k, v in row.items() if f"{name}.{k}" not in without} for row in rows]
                file = write_table(Path(folder), name, kept)
                connection.execute(f"INSERT INTO {name} BY NAME FROM read_parquet(?)", [str(file)])
        connection.execute("USE memory")
        connection.execute("DETACH built")
    return path


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
        "corpora": [{"corpus_id": "c", "source": "python-stdlib", "documents": 596, "bytes": 11_000_000}],
        "models": [_model(model) for model in trained],
        "training": [row for model in trained for row in _training(model)],
        "evaluations": [_evaluation(model, step) for model in trained for step in STEPS],
        "position_losses": [row for model in trained for row in _position_losses(model)],
        "repeat_losses": [row for model in trained for row in _repeat_losses(model)],
        "heads": [row for model in trained for step in STEPS for row in _heads(model, step)],
        "attention_samples": [row for model in trained for row in _attention(model)],
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
        "in_context_learning_nats": -0.5 * _progress(step),
        "repeat_gain_nats": model.repeat_gain * (1.0 if step == STEPS[-1] else _progress(step)),
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
        scores["entropy_without_bos"] = 0.8
        done = 1.0 if step == STEPS[-1] else _progress(step)
        if (layer, head) == model.heads[-1]:
            scores["induction_random_period"] = 0.01 + (model.induction - 0.01) * done
            scores["prefix_matching"] = 0.01 + (min(1, 1.5 * model.induction) - 0.01) * done
        if (layer, head) == model.heads[0]:
            scores["previous_token"] = 0.01 + (model.previous_token - 0.01) * _progress(step, 150)
            if step == STEPS[-1]:
                scores["previous_token"] = model.previous_token
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
