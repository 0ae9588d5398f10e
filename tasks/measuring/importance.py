"""How much each head of a model matters, at its last checkpoint: ablations, and scores that predict them."""

from collections.abc import Callable, Mapping, Sequence, Sized
from math import isfinite
from pathlib import Path
from typing import Any

import torch

from models.bootstrap import bootstrap_ci
from models.heads.ablation import Ablation, Effects, Replacement, ablation_effects, other_sequences, zero_z
from models.heads.evidence import Evidence, HeadScores
from models.heads.importance_methods import METHODS, head_scores, normalise
from models.heads.references import mean_z
from tasks.measuring.trained_model import TrainedModel
from tasks.study.analysis_config import ImportanceConfig
from tasks.text.windows import evaluation_text, reference_text

Rows = list[dict[str, Any]]
ABLATIONS = (
    *(
        Ablation("head", method, scope)
        for method in ("zero", "mean", "position_mean", "resample")
        for scope in ("full", "frozen_patterns")
    ),
    Ablation("others", "zero", "full"),
    Ablation("others", "mean", "full"),
)
SCORES = {f"ablation_{method}": Ablation("head", method, "full") for method in ("zero", "mean", "resample")}


def measure_importance(
    config: ImportanceConfig,
    trained: TrainedModel,
    folder: Path,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> dict[str, object]:
    """Write ablations and importance; a model without heads has neither.

    Raises:
        UserError: the text is too short for one sequence.
    """
    tokens, model = trained.open()
    n_ctx, n_heads = model.architecture.n_ctx, sum(model.architecture.heads_per_layer)
    if not n_heads:
        on_progress(1.0)
        return {"heads": 0, "largest_effect_nats": None}
    text = evaluation_text(tokens, n_ctx, config.windows)
    other_text = reference_text(tokens, n_ctx, config.reference_windows)
    mean = mean_z(model, other_text)
    replacements: dict[str, Sequence[Replacement]] = {
        "zero": [zero_z(model)],
        "mean": [mean],
        "position_mean": [mean_z(model, other_text, by_position=True)],
        "resample": other_sequences(len(text), config.resamples, config.seed),
    }
    effects: dict[Ablation, Effects] = {}
    for method, draws in replacements.items():
        of_method = [ablation for ablation in ABLATIONS if ablation.method == method]
        effects |= ablation_effects(model, text, of_method, {method: draws})
        on_progress(0.8 * len(effects) / len(ABLATIONS))
    scores = {name: [own.mean(1) for own in effects[ablation].loss_nats] for name, ablation in SCORES.items()}
    evidence = Evidence(model, text, mean)
    scores |= {method: head_scores(method, evidence) for method in METHODS if method not in SCORES}
    ablations = [row for ablation, own in effects.items() for row in ablation_rows(ablation, own, config)]
    importance = [row for method, own in scores.items() for row in importance_rows(method, own)]
    trained.write(folder, "ablations", ablations)
    trained.write(folder, "importance", importance)
    on_progress(1.0)
    by_mean = torch.cat(scores["ablation_mean"])
    return {"heads": n_heads, "largest_effect_nats": by_mean.max().item() if by_mean.isfinite().all() else None}


def ablation_rows(ablation: Ablation, effects: Effects, config: ImportanceConfig) -> Rows:
    """Rows of `ablations`, one a head."""
    loss, kl = torch.cat(effects.loss_nats), torch.cat(effects.kl_nats)
    low, high = bootstrap_ci(loss, config.bootstraps, torch.Generator().manual_seed(config.seed))
    columns = {"loss_effect_nats": loss.mean(1), "ci_low_nats": low, "ci_high_nats": high, "kl_nats": kl.mean(1)}
    same = {**ablation._asdict(), "n_sequences": loss.shape[1]}
    return _rows(effects.loss_nats, {name: column.tolist() for name, column in columns.items()}, same)


def importance_rows(method: str, scores: HeadScores) -> Rows:
    """Rows of `importance`, one a head."""
    score, normalised = ([value for own in layers for value in own.tolist()] for layers in (scores, normalise(scores)))
    by_score = sorted((i for i in range(len(score)) if isfinite(score[i])), key=lambda i: -score[i])
    place = {i: rank for rank, i in enumerate(by_score)}
    columns = {
        "score": score,
        "normalised": normalised,
        "rank": [place.get(i) for i in range(len(score))],
    }
    return _rows(scores, columns, {"method": method})


def _rows(layers: Sequence[Sized], columns: Mapping[str, Sequence[Any]], same: Mapping[str, Any]) -> Rows:
    """A row a head, given something of each head a layer."""
    heads = [{"layer": layer, "head": head} for layer, own in enumerate(layers) for head in range(len(own))]
    values = [dict(zip(columns, own, strict=True)) for own in zip(*columns.values(), strict=True)]
    return [{**head, **same, **own} for head, own in zip(heads, values, strict=True)]
