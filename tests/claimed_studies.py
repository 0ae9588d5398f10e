"""Invented studies for every claim of reports/claims: one value a seed of one configuration, as a test wishes."""

import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, inf, sqrt
from statistics import correlation
from typing import Any

from headstream.tasks.results.tables import table_schema

Place = dict[str, int]
Add = Callable[["Tables", int, float], float | None]  # adds the i-th value; returns it where it can't be as wished
RANDOM = -7  # times the value: what random weights give where a claim has them for a control
ARCHITECTURE = {
    "n_layers": 2, "n_heads": 2, "d_model": 16, "d_head": 4, "d_value": 4, "positions": "relative",
    "normalization": "none", "feed_forward": "none", "biases": False, "qk_normalization": False, "attention": "full",
    "gates": "none", "learning_rate": 0.01, "muon_learning_rate": 0.1, "warmup_steps": 10, "parameters": 1000,
}  # fmt: skip


class Tables(defaultdict[str, list[dict[str, Any]]]):
    """Rows of one study, by table."""

    def __init__(self, study: str) -> None:
        super().__init__(list)
        self.study = study
        self["studies"].append({"study": study})
        self["corpora"].append({"corpus_id": study, "unigram_loss_nats": 60.0, "bigram_loss_nats": 50.0})

    def model(self, seed: int = 0, loss: float = 10.0, gain: float | None = None, **axes: Any) -> str:
        """Adds a trained model, its validation loss and repeat_gain; `axes` are those that the study's grid varies."""
        model_id = f"{self.study}/{len(self['models'])}"
        cell = " ".join(f"{axis}={value}" for axis, value in {**axes, "seed": seed}.items())
        columns = {**ARCHITECTURE, **axes, "seed": seed, "model_id": model_id, "corpus_id": self.study}
        heads = [columns["n_heads"]] * columns["n_layers"]
        row = {"heads_per_layer": heads, "total_heads": sum(heads), **columns}
        self["models"].append({name: row[name] for name in table_schema("models").names if name in row})
        self["study_models"].append({"study": self.study, "model_id": model_id, "cell": cell, "status": "trained"})
        self.add("evaluations", model_id, step=10, validation_loss_nats=loss, repeat_gain_nats=gain)
        return model_id

    def add(self, table: str, model_id: str, **columns: Any) -> None:
        """Adds a row about a model."""
        self[table].append({"model_id": model_id, **columns})

    def head(self, model_id: str, layer: int, head: int, **scores: float) -> None:
        """Adds a head, with other scores at an earlier checkpoint."""
        for step, factor in ((0, RANDOM), (10, 1)):
            place = {"step": step, "layer": layer, "head": head}
            self.add("heads", model_id, **place, **{name: type(s)(factor * s) for name, s in scores.items()})


def pair(writer: int, reader: int, roles: str = "writer reader") -> Place:
    """A head of layer 0 and one of layer 1."""
    first, second = roles.split()
    return {f"{first}_layer": 0, f"{first}_head": writer, f"{second}_layer": 1, f"{second}_head": reader}


# One function a claim


def identity(name: str, **axes: Any) -> Add:
    def add(tables: Tables, i: int, value: float) -> None:
        model = tables.model(seed=i, **axes)
        tables.add("identities", model, identity=name, difference=value)
        tables.add("identities", model, identity="another", difference=1.0)

    return add


def ov_rank(tables: Tables, i: int, value: float) -> None:
    tables.head(tables.model(seed=i), 0, 0, ov_rank=int(4 + value))


def subspaces_small(tables: Tables, i: int, value: float) -> None:
    model = tables.model(seed=i, n_heads=3)
    for reader, ratio in enumerate((value, value / 3, 3 * value)):
        for kind, share in zip("QKV", (0.5, 1, 1.5), strict=True):
            for step, factor in ((0, RANDOM), (10, 1)):
                overlap = {"overlap": factor * share * ratio / 8, "random_overlap": 0.125}
                tables.add("subspaces", model, **pair(0, reader), step=step, kind=kind, **overlap)


def direct_is_bigram(tables: Tables, i: int, value: float) -> None:
    tables.add("bigrams", tables.model(seed=i, n_layers=0), explained_share=value)
    tables.add("bigrams", tables.model(seed=i, n_layers=1), explained_share=-9.0)


def gap_filling(tables: Tables, i: int, value: float) -> None:
    model = tables.model(seed=i, n_layers=1)
    tables.add("bigrams", model, gap_coefficient=value)


def one_layer_copies(tables: Tables, i: int, value: float) -> None:
    model = tables.model(seed=i, n_layers=1)
    for head in range(4):
        tables.head(model, 0, head, copying_eigenvalues=0.6 if head < 4 * value else 0.4)


def skip_trigram_bugs(tables: Tables, i: int, value: float, before: float = 0.0) -> None:
    model = tables.model(seed=i)
    for head in range(8):
        tables.head(model, 0, head, ov_rank=4)
        for step, share in ((0, before), (10, value)):
            for rank, is_bug in ((3, head < 8 * share), (4, head < 8 * share), (20, True)):
                tables.add("skip_trigrams", model, step=step, layer=0, head=head, rank=rank, is_bug=is_bug)


def composition_matters(tables: Tables, i: int, value: float) -> None:
    for n_layers, n_heads, gain in ((1, 4, 0.5), (2, 2, 0.5 + value), (2, 4, 99.0)):
        tables.model(seed=i, gain=gain, n_layers=n_layers, n_heads=n_heads)


def induction_needs_two_layers(tables: Tables, i: int, value: float) -> None:
    """The margin of one depth and, by turns, a larger one of the other."""
    margins = (value, value + 0.1) if i % 2 else (value + 0.1, value)
    for n_layers, score in ((1, 0.05 * (1 - margins[0])), (2, 0.15 * (1 + margins[1]))):
        model = tables.model(seed=i, n_layers=n_layers)
        tables.head(model, n_layers - 1, 0, induction_random_period=score)
        tables.head(model, n_layers - 1, 1, induction_random_period=-9.0)


def induction_circuit(tables: Tables, i: int, induction: float, z: float, without: float, matching: float) -> None:
    """A model whose L1H0 reads L0H0, a previous-token head, by its keys, and L0H1 with z = 5."""
    model = tables.model(seed=i)
    for head, previous_token in ((0, 0.9), (1, 0.2)):
        tables.head(model, 0, head, previous_token=previous_token)
        composed = {"step": 10, "kind": "K", "z": 5.0 if head else z, "significant": True}
        tables.add("compositions", model, **pair(head, 0), **composed, matching_eigenvalues=-1.0 if head else matching)
    tables.head(
        model,
        1,
        0,
        induction_random_period=induction,
        prefix_matching=0.6,
        induction_copying_logit=1.0,
        induction_copying_logit_sem=0.1,
    )
    place = {"reader_layer": 1, "reader_head": 0, "kind": "K", "writers": ["L0H0"]}
    tables.add("joint_checks", model, **place, prefix_matching=0.6, prefix_matching_without=without)


def induction_by_k_composition(tables: Tables, i: int, value: float) -> None:
    """Beside models without an induction head, which don't count."""
    for induction in (0.5, 0.1):
        induction_circuit(tables, i, induction, 9.0, 0.6 * (1 - value), matching=1.0)


def one_k_pair_dominates(tables: Tables, i: int, value: float) -> None:
    model = tables.model(seed=i, n_heads=20)
    for reader in range(20):
        kind = "K" if reader < round(10 * value) else "Q"
        row = {**pair(0, reader), "kind": kind, "z": 1.0}
        tables.add("compositions", model, **row, step=10, significant=reader < 10)
        tables.add("compositions", model, **row, step=0, significant=True)


def matching_circuit(tables: Tables, i: int, value: float) -> None:
    """After the first beside models without a circuit, which don't count."""
    for induction, without, matching in ((0.5, 0.1, value), (0.5, 0.5, -1.0), (0.1, 0.1, -1.0))[: 3 if i else 1]:
        induction_circuit(tables, i, induction, 9.0, without, matching)


def qk_change_patterns(tables: Tables, i: int, value: float, before: float = 0.0) -> None:
    model = tables.model(seed=i)
    for step, head, share in ((0, 0, before), (0, 1, before), (10, 0, value + 0.05), (10, 1, value - 0.05)):
        for composition, part in (("Q", -0.1), ("K", share), ("QK", 0.1), ("direct", 1 - share)):
            place = {"step": step, "layer": 1, "head": head, "query_source": composition, "key_source": "x"}
            tables.add("score_terms", model, **place, composition=composition, share=part)


def virtual_heads_small(tables: Tables, i: int, value: float) -> None:
    model = tables.model(seed=i)
    for order, effect in ((0, 3.0), (1, 2.0), (2, 2 * value)):
        tables.add("path_terms", model, term=f"order {order}", loss_effect_nats=effect)


def virtual_heads_grow(tables: Tables, i: int, value: float) -> None:
    """The i-th model has i layers."""
    model = tables.model(n_layers=i)
    tables.add("path_terms", model, term="order 0")
    for first in range(2 * i):
        for second in range(2 * i):
            if first // 2 < second // 2:
                place = {"first_layer": first // 2, "first_head": first % 2}
                tables.add("virtual_heads", model, **place, second_layer=second // 2, second_head=second % 2)
    for extra in range(int(value)):
        tables.add("virtual_heads", model, **pair(9, extra, "first second"))


def information_persists(tables: Tables, i: int, value: float) -> None:
    model = tables.model(seed=i)
    for layer, head, persistence in ((0, 0, value), (0, 1, 5.0), (0, 2, -5.0), (1, 0, 9.0)):
        tables.head(model, layer, head, persistence=persistence)


def bandwidth_contested(tables: Tables, i: int, value: float) -> None:
    model = tables.model(seed=i, feed_forward="gelu", d_mlp=2)
    for layer, rank in ((0, 2), (1, round(16 / value) - 6)):
        tables.head(model, layer, 0, ov_rank=rank)


def more_heads_diminish(tables: Tables, i: int, value: float) -> None:
    for n_heads, loss in ((1, 3.0), (2, 2.9 - value), (4, 2.0), (8, 1.9)):
        tables.model(seed=i, loss=loss, n_heads=n_heads)


def head_tradeoff(tables: Tables, i: int, value: float) -> None:
    for n_heads, loss in ((1, 3 + value), (2, 3.2), (4, 3.0), (8, 4 + value)):
        tables.model(seed=i, loss=loss, n_heads=n_heads, d_head=16 // n_heads, d_value=16 // n_heads)
    tables.model(seed=i, loss=0.0, n_heads=2, d_head=2, d_value=2)


def heads_regularise(tables: Tables, i: int, value: float) -> None:
    for doublings in range(3):
        model = tables.model(seed=i, loss=3 + doublings * value, n_heads=2**doublings)
        tables["evaluations"][-1] |= {"model_id": model, "train_loss_nats": 2.5}


def feed_forward_adds(tables: Tables, i: int, value: float) -> None:
    tables.model(seed=i, loss=3 + value, feed_forward="gelu", d_mlp=8)
    for n_layers, parameters, loss in ((3, 1040, 2.9), (4, 960, 3.1), (8, 1060, 0.0)):
        tables.model(seed=i, loss=loss, feed_forward="none", n_layers=n_layers)
        tables["models"][-1]["parameters"] = parameters


def qk_norm_steadies(tables: Tables, i: int, value: float) -> None:
    """At the lower rate it is the other way round."""
    for rate, sign in ((0.01, -1), (0.02, 1)):
        for normalised, spread in ((False, 2.0), (True, 2 + sign * value)):
            model = tables.model(seed=i, qk_normalization=normalised, learning_rate=rate)
            for step, log_norm in ((10, 99.0), (11, spread / 2**0.5), (12, -spread / 2**0.5)):
                tables.add("training", model, step=step, gradient_norm=exp(log_norm))


def heads_specialise(tables: Tables, i: int, value: float) -> None:
    model = tables.model(seed=i)
    for head, extra in ((0, 0.1), (1, -0.1)):
        place = {"layer": 0, "head": head, "other_model_id": "another seed", "other_layer": 0, "other_head": head}
        tables.add("head_matches", model, **place, nearest_distance=0.4 + value + extra, matched_distance=0.4)


def heads_prunable(tables: Tables, i: int, value: float) -> None:
    model = tables.model(seed=i, n_heads=5)
    for procedure, share in (("iterative", value), ("one_shot", 1.0)):
        for n_pruned in range(11):
            row = {"procedure": procedure, "order_method": "ablation_mean", "draw": 0, "n_pruned": n_pruned}
            tables.add("pruning", model, **row, relative_increase=0.009 if n_pruned <= 10 * share else 0.011)


def heads_redundant(tables: Tables, i: int, value: float) -> None:
    model = tables.model(seed=i)
    for reader, redundant in ((0, bool(value)), (1, False), (2, None)):
        both = {"is_redundant": redundant, "initial_is_redundant": None if redundant is None else False}
        tables.add("head_similarity", model, **pair(0, reader, "first second"), **both)


N_HEADS = 16  # of models whose importances are ranked


def add_importance(tables: Tables, i: int, **methods: Sequence[float]) -> None:
    model = tables.model(seed=i, n_heads=N_HEADS, n_layers=1)
    for method, scores in methods.items():
        for head, score in enumerate(scores):
            tables.add("importance", model, layer=0, head=head, method=method, score=float(score))


@cache
def orders(n: int) -> list[list[int]]:
    """Orders of the heads, the first as it is and the next few ever less so."""
    draw = random.Random(0)
    nearly = [
        sorted(range(N_HEADS), key=lambda head: head + draw.gauss(0, spread))
        for spread in range(1, 9)
        for _ in range(20)
    ]
    return [[*range(N_HEADS)], *nearly, *(draw.sample(range(N_HEADS), N_HEADS) for _ in range(n))]


@cache
def correlated_orders() -> list[tuple[float, list[int]]]:
    """Orders of the heads, and how each correlates with the order as it is."""
    return [(correlation(order, range(N_HEADS)), order) for order in orders(3000)]


def weight_norm_predicts(tables: Tables, i: int, value: float) -> float:
    found, norm = min(correlated_orders(), key=lambda each: abs(each[0] - value))
    add_importance(tables, i, weight_norm=norm, ablation_mean=range(N_HEADS))
    return found


NORMS = (1, 0, 7, 2, 4, 6, 3, 5, 9, 8, 15, 10, 12, 14, 11, 13)


@cache
def partially_correlated_orders() -> list[tuple[float, list[int]]]:
    """Orders of the heads, and how each correlates with the order as it is beyond what NORMS do."""
    found = []
    known = correlation(NORMS, range(N_HEADS))
    for order in orders(1000):
        own, shared = correlation(order, range(N_HEADS)), correlation(order, NORMS)
        unexplained = sqrt((1 - shared**2) * (1 - known**2))
        found.append(((own - shared * known) / unexplained if abs(shared) < 1 else inf, order))
    return found


def variance_adds(tables: Tables, i: int, value: float) -> float:
    found, variance = min(partially_correlated_orders(), key=lambda each: abs(each[0] - value))
    scores = [10 * score for score in variance]
    add_importance(tables, i, weight_norm=NORMS, attention_variance=scores, ablation_mean=range(N_HEADS))
    return found


def heads_are_linguistic(tables: Tables, i: int, value: float) -> None:
    model = tables.model(seed=i)
    more = (0.1, 0.0) if i % 2 else (0.0, 0.1)
    for task, extra in zip(("lexical_class", "bracket_depth", "indentation"), (*more, -1.0), strict=True):
        for site, head, gain, selected in (
            ("L0H0", 0, value + extra, 0.0),
            ("L0H1", 1, 0.8, -0.1),
            ("R1", None, 0.9, 0.9),
        ):
            place = {"site": site, "task": task, "layer": 0, "head": head}
            tables.add("probes", model, **place, gain=gain, selection_gain=selected)


def projections_differ(tables: Tables, i: int, value: float) -> None:
    model = tables.model(seed=i, d_value=8)
    for head, factor in ((0, 0.8), (1, 1.2)):
        overlaps = {"query_key": value * factor / 4, "query_value": value * factor / 2, "key_value": value * factor / 2}
        tables.head(model, 0, head, **{f"{name}_overlap": overlap for name, overlap in overlaps.items()})


def dynamic_heads(tables: Tables, i: int, value: float) -> None:
    tables.model(seed=i, loss=3.0, gates="none")
    for active, loss in ((value, 3.02), (value + 0.1, 3.0), (0.1, 3.04)):
        model = tables.model(seed=i, loss=loss, gates="dynamic", active_fraction=active)
        for head, extra in ((0, 0.05), (1, -0.05)):
            tables.head(model, 0, head, active_fraction=active + extra)


def heads_cost_constant(tables: Tables, i: int, value: float) -> None:
    if not i:
        tables.model()
    for n_heads, seconds in ((1, 2.0), (2, 99.0), (8, 2 * value)):
        add_cost(tables, "n_heads", seconds=seconds, flops=1e6, n_heads=n_heads, n_ctx=128 * (1 + i))


def cost_exponents(tables: Tables, i: int, value: float) -> None:
    """The first is of n_ctx, the second of d_model; small sizes differ."""
    if not i:
        tables.model()
    axis, other = (("n_ctx", "d_model"), ("d_model", "n_ctx"))[i]
    for size in (16, 32, 64, 128, 256):
        add_cost(tables, axis, flops=1e6 * max(size, 64) ** (2 + value), **{axis: size, other: 16})


def sparse_is_linear(tables: Tables, i: int, value: float, exponent: float = 1.0) -> None:
    for size in (64, 128, 256) if not i else ():
        cost = {"flops": 1e6 * size, "seconds": size**exponent, "n_ctx": size, "attention": "local"}
        add_cost(tables, "n_ctx", **cost)
    tables.model(seed=i, loss=3.0, attention="full")
    tables.model(seed=i, loss=3.0 * (1 + 0.02 * (1 - value)), attention="local")


def add_cost(tables: Tables, axis: str, flops: float, attention: str = "full", **columns: float) -> None:
    """Adds a row of costs, to a study that asks for all sizes."""
    sizes = {"n_ctx": [16, 256], "d_model": [16, 256], "n_heads": [1, 2, 8]}
    tables["studies"][0]["config"] = json.dumps({"costs": sizes})
    rounds = {"seconds_by_round": [columns["seconds"]] * 3} if "seconds" in columns else {}
    row = {"study": tables.study, "axis": axis, "pass": "forward", "attention": attention, **rounds, **columns}
    config = f"{attention} {columns}"
    tables["costs"].append({**{"n_ctx": 64, "d_model": 16}, **row, "config_id": config, "flops_counted": round(flops)})


TRAINED, SCORE, FORMED = (
    10**8,
    0.4,
    25 * 10**6,
)  # tokens, the base's induction_random_period at the end, when it has half of it


def trained(
    tables: Tables, seed: int, formed: float = FORMED, score: float = SCORE, done: str | None = None, **axes: Any
) -> str:
    """A model whose best head, L1H0, has half of SCORE after so many tokens, and reads L0H0 by its keys."""
    model = tables.model(seed=seed, tokens=TRAINED, **({"interventions": f"[{done}]"} if done else {}), **axes)
    tables["models"][-1]["interventions"] = done
    tables["evaluations"][-1]["tokens"] = TRAINED
    if done:
        kind, _, rest = done.partition(" ")
        since, until = ((int(rest.split(word)[1].split()[0]) if word in rest else None) for word in ("from ", "until "))
        heads = None if kind in ("cut", "unlearn") else [rest.split()[0]]
        place = {"place": 1, "kind": kind, "heads": heads, "from_tokens": since or 0, "until_tokens": until}
        tables.add("interventions", model, **place)
    reader = {"layer": columns_of(tables, model)["n_layers"] - 1, "head": 0}
    if formed < TRAINED:
        tables.add("evaluations", model, step=5, tokens=int(formed))
        tables.add("heads", model, step=5, **reader, induction_random_period=SCORE / 2)
    copies = {"induction_copying_logit": 1.0, "induction_copying_logit_sem": 0.1}
    tables.head(model, reader["layer"], 0, induction_random_period=score, **copies)
    place = {"reader_layer": reader["layer"], "reader_head": 0, "kind": "K", "writers": ["L0H0"]}
    tables.add("joint_checks", model, **place, prefix_matching=0.6, prefix_matching_without=0.1)
    return model


def columns_of(tables: Tables, model: str) -> dict[str, Any]:
    return next(row for row in tables["models"] if row["model_id"] == model)


def smeared_keys_suffice(tables: Tables, i: int, value: float) -> None:
    """The margin of the smeared model and, by turns, a larger one of the other."""
    margins = (value, value + 0.1) if i % 2 else (value + 0.1, value)
    for smeared, score in ((True, 0.15 * (1 + margins[0])), (False, 0.05 * (1 - margins[1]))):
        model = tables.model(seed=i, n_layers=1, key_smearing=smeared)
        tables.head(model, 0, 0, induction_random_period=score)


def delayed(done: str | None, **axes: Any) -> Add:
    """The delay, in doublings, of a model to which something is done."""

    def add(tables: Tables, i: int, value: float) -> None:
        trained(tables, i, **dict.fromkeys(axes, False))
        trained(tables, i, FORMED * 2**value, done=done, **axes)

    return add


def writer_hastens(tables: Tables, i: int, value: float) -> None:
    """The other head's silence hastens the induction head, or delays it by half as much as the writer's."""
    trained(tables, i)
    others = -0.5 if i % 2 else 0.1
    trained(tables, i, FORMED * 2 ** (value + max(others, 0)), done="silence L0H0")
    trained(tables, i, FORMED * 2**others, done="silence L0H1")


def ending_at(done: str, difference: bool = False) -> Add:
    """The induction_random_period, or its difference from the base's, of a model to which something is done."""

    def add(tables: Tables, i: int, value: float) -> None:
        trained(tables, i)
        trained(tables, i, score=value + SCORE * difference, done=done)

    return add


def suppression_costs(tables: Tables, i: int, value: float) -> None:
    trained(tables, i)
    trained(tables, i, 2 * FORMED + FORMED * 2**value, done=f"clamp L1H0 to uniform until {2 * FORMED}")


def late_silence_regrows(tables: Tables, i: int, value: float) -> None:
    trained(tables, i)
    model = trained(tables, i, done=f"silence L1H0 from {2 * FORMED}")
    tables.head(model, 1, 1, induction_random_period=value)


@dataclass(frozen=True)
class Case:
    """Values with which a claim must hold, must fail, and must stay undecided."""

    add: Add
    holds: Sequence[float]
    fails: Sequence[float]
    undecided: Sequence[float] = ()  # none: the worst value decides, or nothing does

    def tables(self, study: str, values: Sequence[float]) -> tuple[Tables, list[float]]:
        """A study with these values, and the values as they came to be."""
        tables, made = Tables(study), []
        for i, value in enumerate(values):
            came = self.add(tables, i, value)
            made.append(value if came is None else came)
        return tables, made


def around(bar: float, step: float, n: int = 3) -> tuple[list[float], list[float], list[float]]:
    """Values on the good side of a bar, on the other, and on both; step > 0 if the good side is above."""
    good, bad = ([bar + sign * step * x for x in (1, 1.1, 0.9, 1.05, 0.95)[:n]] for sign in (1, -1))
    return good, bad, [good[0], bad[0], *good[1 : n - 1]]


CASES = {
    "paths-sum": Case(identity("paths-sum"), [5e-5, 9e-5], [5e-5, 2e-4]),
    "terms-add": Case(identity("terms-add", n_layers=1), [5e-5, 9e-5], [5e-5, 2e-4]),
    "pattern-bilinear": Case(identity("pattern-bilinear"), [5e-6, 9e-6], [5e-6, 2e-5]),
    "source-decides": Case(identity("source-decides"), [5e-6, 9e-6], [5e-6, 2e-5]),
    "one-head-is-attention": Case(identity("one-head-is-attention"), [5e-6, 9e-6], [5e-6, 2e-5]),
    "heads-independent": Case(identity("heads-independent"), [5e-6, 9e-6], [5e-6, 2e-5]),
    "ov-rank": Case(ov_rank, [0, -1], [0, 1]),
    "subspaces-small": Case(subspaces_small, [1, 1.1, 1.2], []),
    "direct-is-bigram": Case(direct_is_bigram, *around(0.9, 0.05)),
    "gap-filling": Case(gap_filling, [-0.5, -0.6, -0.4], []),
    "one-layer-copies": Case(one_layer_copies, [1] * 3, [0] * 3, [1, 0, 0.75]),
    "skip-trigram-bugs": Case(skip_trigram_bugs, [1] * 3, [0] * 6, [1, 0, 0.75]),
    "composition-matters": Case(composition_matters, *around(0.2, 0.1)),
    "induction-needs-two-layers": Case(induction_needs_two_layers, *around(0, 0.3)),
    "induction-by-k-composition": Case(induction_by_k_composition, *around(0.5, 0.2)),
    "one-k-pair-dominates": Case(one_k_pair_dominates, [1] * 7, [0.3, 0.5, 0.4], [1, 0.5, 0.8]),
    "matching-circuit": Case(matching_circuit, *around(0.5, 0.2)),
    "qk-change-patterns": Case(qk_change_patterns, *around(0.1, 0.05)),
    "virtual-heads-small": Case(virtual_heads_small, *around(0.2, -0.1)),
    "virtual-heads-grow": Case(virtual_heads_grow, [0, 0, 0, 0], [0, 0, 1, 0]),
    "information-persists": Case(information_persists, [0.8, 0.9, 1.0], []),
    "bandwidth-contested": Case(bandwidth_contested, [0.8, 16 / 24], [0.8, 16 / 15]),
    "more-heads-diminish": Case(more_heads_diminish, *around(0, 0.05)),
    "head-tradeoff": Case(head_tradeoff, *around(0, 0.1)),
    "heads-regularise": Case(heads_regularise, *around(0, -0.1)),
    "feed-forward-adds": Case(feed_forward_adds, *around(0, -0.1, 5)),
    "qk-norm-steadies": Case(qk_norm_steadies, *around(0, -0.1, 5)),
    "heads-specialise": Case(heads_specialise, *around(0, 0.1)),
    "heads-prunable": Case(heads_prunable, [0.5, 0.4, 0.6], [0, 0.1, 0], [0, 0.4, 0.2]),
    "heads-redundant": Case(heads_redundant, [1] * 12, [0] * 12, [1] * 5),
    "weight-norm-predicts": Case(weight_norm_predicts, [0.9, 0.95, 0.85], [-0.1, 0, -0.2], [0.9, 0, 0.5]),
    "variance-adds": Case(variance_adds, [0.3, 0.35, 0.25], [-0.3, -0.35, -0.25], [0.3, -0.3, 0]),
    "heads-are-linguistic": Case(heads_are_linguistic, *around(0.02, 0.01)),
    "projections-differ": Case(projections_differ, [1, 1.1, 1.2], []),
    "dynamic-heads": Case(dynamic_heads, *around(0.8, -0.1)),
    "heads-cost-constant": Case(heads_cost_constant, [1.1, 1.4], [1.1, 1.6]),
    "cost-exponents": Case(cost_exponents, [0.05, -0.02], [0.05, -0.2]),
    "sparse-is-linear": Case(sparse_is_linear, *around(0, 0.1)),
    "smeared-keys-suffice": Case(smeared_keys_suffice, *around(0, 0.3)),
    "smearing-hastens": Case(delayed(None, key_smearing=True), *around(0, -0.3)),
    "writer-hastens": Case(writer_hastens, *around(0, 0.3)),
    "others-take-over": Case(ending_at("silence L0H0"), *around(0.2, 0.05)),
    "keys-needed": Case(ending_at("cut L0 -> L1.K"), *around(0.05, -0.01)),
    "clamp-hastens": Case(delayed("clamp L0H1 to previous"), *around(0, -0.3)),
    "suppression-costs": Case(suppression_costs, *around(0, -0.3)),
    "loss-feeds-it": Case(ending_at("unlearn token", difference=True), *around(0, -0.05)),
    "late-silence-regrows": Case(late_silence_regrows, *around(0.2, 0.05)),
}
