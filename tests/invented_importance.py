"""Invented results of ablation, importance, pruning, redundancy and probes, for invented_study.py."""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from invented_study import Model

Rows = Iterator[dict[str, Any]]

METHODS = ("ablation_mean", "ablation_resample", "ablation_zero", "attention_variance", "confidence", "gate")
METHODS += ("hf_bertology", "lrp", "michel_code", "michel_paper", "qkv_norm", "taylor_signed", "weight_norm")
SHARPNESS = {"zero": 1.5, "mean": 1.0, "position_mean": 0.9, "resample": 1.2}  # effects over that of the mean
PENALTIES = (0.003, 0.01, 0.03, 0.1)
TASKS = {"bracket_depth": 0.15, "lexical_class": 0.3, "seen_before": 0.05}  # the best head's gain
N_DRAWS = 5


def effect(model: "Model", k: int) -> float:
    """Nats that the loss rises without head number k: much for the first and the last one."""
    return {0: 0.5, len(model.heads) - 1: 0.3}.get(k, 0.004 * k)


def increase(n_pruned: int, spare: int) -> float:
    """Relative increase of the loss: 0.2 % a head while heads can be spared, then 3 %, 12 %, 27 %."""
    return 0.002 * n_pruned if n_pruned <= spare else 0.03 * (n_pruned - spare) ** 2


def _ablations(model: "Model") -> Rows:
    ways = [("head", method, scope) for method in SHARPNESS for scope in ("full", "frozen_patterns")]
    ways += [("others", method, "full") for method in ("zero", "mean")]
    for k, (layer, head) in enumerate(model.heads):
        for ablated, method, scope in ways:
            nats = effect(model, k) * SHARPNESS[method] * (0.5 if scope == "frozen_patterns" else 1)
            nats = 0.9 - nats if ablated == "others" else nats
            yield {
                **{"layer": layer, "head": head, "ablated": ablated, "method": method, "scope": scope},
                **{"loss_effect_nats": nats, "ci_low_nats": nats - 0.01, "ci_high_nats": nats + 0.01},
                **{"kl_nats": 1.1 * nats, "n_sequences": 64},
            }


def _importance(model: "Model") -> Rows:
    """The later a method's name comes, the less it agrees with ablation_mean; taylor_signed is negative."""
    n = len(model.heads)
    for i, method in enumerate(METHODS):
        sign = -1 if method == "taylor_signed" else 1
        scores = [sign * (effect(model, k) + 0.03 * i * ((k * 7 + model.seed) % 5)) for k in range(n)]
        ranked = sorted(range(n), key=lambda k: (-scores[k], k))
        for k, (layer, head) in enumerate(model.heads):
            of_layer = [scores[j] for j in range(n) if model.heads[j][0] == layer]
            norm = sum(score**2 for score in of_layer) ** 0.5
            normalised = scores[k] / norm if norm else None
            place = {"layer": layer, "head": head, "method": method, "rank": ranked.index(k)}
            yield {**place, "score": scores[k], "normalised": normalised}


def _gates(model: "Model") -> Rows:
    for penalty in PENALTIES:
        for k, (layer, head) in enumerate(model.heads):
            is_open = effect(model, k) > penalty
            place = {"penalty_nats": penalty, "layer": layer, "head": head}
            yield {**place, "log_alpha": 3.0 if is_open else -3.0, "gate": float(is_open), "open_probability": 0.9}


def _gate_sweeps(model: "Model") -> Rows:
    for penalty in PENALTIES if model.heads else ():
        n_open = sum(effect(model, k) > penalty for k in range(len(model.heads)))
        loss = model.loss * (1 + increase(len(model.heads) - n_open, model.spare))
        yield {
            **{"penalty_nats": penalty, "n_open": n_open, "expected_open": n_open + 0.3},
            **{"intact_loss_nats": model.loss, "gated_loss_nats": loss},
            **{"folded_loss_nats": loss, "binarised_loss_nats": loss + 0.01},
        }


def _pruning(model: "Model") -> Rows:
    """Heads can be spared in iterative pruning, one less at one shot, one more with retraining; random orders cost."""
    n = len(model.heads)
    curves = {("one_shot", method): max(0, model.spare - 1 - i % 3) for i, method in enumerate(METHODS)}
    curves |= {("iterative", method): model.spare for method in ("ablation_mean", "michel_paper")}
    curves |= {("iterative_retrain", "michel_paper"): model.spare + 1}
    for (procedure, order), spare in curves.items():
        for n_pruned in range(n + 1) if n else ():
            yield _pruned(model, procedure, order, 0, n_pruned, increase(n_pruned, spare))
    for n_pruned in sorted({0, min(model.spare, n), n}) if n else ():
        yield _pruned(model, "gates", "gate", 0, n_pruned, increase(n_pruned, model.spare) + (0.003 if n_pruned else 0))
    for draw in range(N_DRAWS):
        for n_pruned in range(n + 1) if n else ():
            yield _pruned(model, "random", "random", draw, n_pruned, 0.008 * (1 + draw) * n_pruned)


def _pruned(model: "Model", procedure: str, order: str, draw: int, n_pruned: int, relative: float) -> dict[str, Any]:
    effect_nats = model.loss * relative
    return {
        **{"procedure": procedure, "order_method": order, "draw": draw, "n_pruned": n_pruned},
        **{"fraction_pruned": n_pruned / len(model.heads), "relative_increase": relative},
        **{"loss_nats": model.loss + effect_nats, "loss_effect_nats": effect_nats},
        **{"ci_low_nats": effect_nats - 0.002, "ci_high_nats": effect_nats + 0.002},
        "parameters": 262_144 - 4096 * n_pruned,
    }


def _pruned_models(model: "Model") -> Rows:
    n = len(model.heads)
    for chosen_as, n_pruned in {"within 1 %": model.spare, "within 5 %": model.spare + 1, "half": n // 2}.items():
        if 0 < n_pruned <= n:
            yield {
                **{"procedure": "iterative", "order_method": "ablation_mean", "n_pruned": n_pruned},
                **{"chosen_as": chosen_as, "heads_per_layer": [n - n_pruned] if n > n_pruned else []},
                **{"parameters": 200_000, "intact_parameters": 250_000},
                **{"checkpoint_bytes": 800_000, "intact_checkpoint_bytes": 1_000_000, "logit_difference": 1e-6},
                "loss_nats": model.loss * (1 + increase(n_pruned, model.spare)),
                "intact_loss_nats": model.loss,
                **{"seconds_batch_1": 0.003, "intact_seconds_batch_1": 0.004},
                **{"seconds_batch_32": 0.03, "intact_seconds_batch_32": 0.06},
                "checkpoint": f"pruned/iterative-ablation_mean-{n_pruned}",
            }


def _head_similarity(model: "Model") -> Rows:
    """The second and the third head attend nearly alike and stand in for each other; eight pairs are tried."""
    for i, (first, second) in enumerate(combinations(range(len(model.heads)), 2)):
        alike, is_tried = (first, second) == (1, 2), i < 8
        names = ("first_layer", "first_head", "second_layer", "second_head")
        alone = [effect(model, k) for k in (first, second)]
        effects = {"first_effect_nats": alone[0], "second_effect_nats": alone[1]}
        excess = 0.2 if alike else -0.001
        effects |= {"both_effect_nats": sum(alone) + excess, "excess_nats": excess, "is_redundant": alike}
        effects |= {"excess_sem_nats": 0.01, "excess_chance": 0.001 if alike else 1.0, "initial_is_redundant": False}
        yield {
            **dict(zip(names, (*model.heads[first], *model.heads[second]), strict=True)),
            "jensen_shannon_distance": 0.1 if alike else 0.4 + 0.01 * (i % 30),
            "output_cka": 0.9 if alike else 0.2,
            "ov_cosine": 0.8 if alike else 0.0,
            **(effects if is_tried or alike else {}),
        }


def _head_clusters(model: "Model") -> Rows:
    """The second and the third head are one cluster, the others stand alone; the last leaf is the first head."""
    for k, (layer, head) in enumerate(model.heads):
        yield {"layer": layer, "head": head, "cluster": k - (k >= 2), "leaf": (k - 1) % len(model.heads)}


def _attention_aggregates(model: "Model") -> Rows:
    """Half of a query's attention stays where it is, the rest is spread evenly; rollout spreads less, flow more."""
    for method, kept in {"mean": 0.5, "rollout": 0.75, "flow": 0.25}.items():
        for layer in range(model.n_layers):
            for query, query_token in enumerate(model.passage):
                for key in range(query + 1):
                    weight = (1 - kept) / (query + 1) + (kept if key == query else 0)
                    tokens = {"query_token": query_token, "key_token": model.passage[key]}
                    yield {"method": method, "layer": layer, "query": query, "key": key, **tokens, "weight": weight}


def _probes(model: "Model") -> Rows:
    """The last head tells most, the end of the stream a little more."""
    heads = [(f"L{layer}H{head}", layer, head) for layer, head in model.heads]
    stream = [(f"R{layer}", layer, None) for layer in range(model.n_layers + 1)] if heads else []
    for task, best in TASKS.items():
        for k, (site, layer, head) in enumerate([*heads, *stream]):
            gain = best - 0.01 * (len(heads) - 1 - k)
            yield {
                **{"site": site, "task": task, "layer": layer, "head": head, "accuracy": 0.6 + gain},
                **{"majority_accuracy": 0.55, "type_accuracy": 0.6, "control_accuracy": 0.5, "control_sem": 0.01},
                **{"selectivity": 0.1 + gain, "selectivity_sem": 0.02, "selection_gain": gain - 0.1},
                **{"gain": gain, "gain_sem": 0.01, "gain_low": gain - 0.02, "gain_high": gain + 0.02},
            }


def _probe_tasks(model: "Model") -> Rows:
    for task in TASKS if model.heads else ():
        yield {"task": task, "n_classes": 4, "n_train": 8000, "n_test": 4000, "why_absent": None}
    if model.heads:
        yield {"task": "part_of_speech", "why_absent": "the corpus is not in CoNLL-U"}


IMPORTANCE: dict[str, Callable[["Model"], Rows]] = {
    "ablations": _ablations,
    "importance": _importance,
    "gates": _gates,
    "gate_sweeps": _gate_sweeps,
    "pruning": _pruning,
    "pruned_models": _pruned_models,
    "head_similarity": _head_similarity,
    "head_clusters": _head_clusters,
    "attention_aggregates": _attention_aggregates,
    "probes": _probes,
    "probe_tasks": _probe_tasks,
}
