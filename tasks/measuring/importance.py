"""Importance of each head of a model, at its last checkpoint: ablations, and scores that predict them."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from headstream.models.clustered_errors import clustered_mean
from headstream.models.heads.ablation import Ablation, Effects, Replacement, ablation_effects, other_sequences, zero_z
from headstream.models.heads.head import heads_of, mask_without, removed_heads
from headstream.models.heads.importance_methods import METHODS, head_scores
from headstream.models.heads.references import mean_z
from headstream.models.heads.scoring_inputs import ScoringInputs
from headstream.tasks.measuring.budgets import windows_within_budget
from headstream.tasks.measuring.head_rows import head_rows, importance_rows
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.study.analyses.importance_config import ImportanceConfig

SCORES = {f"ablation_{method}": Ablation("head", method, "full") for method in ("zero", "mean", "resample")}


def ablations_of(config: ImportanceConfig) -> list[Ablation]:
    """Every way in which heads are ablated."""
    every = [Ablation("head", method, scope) for method in config.replacements for scope in config.scopes]
    alone = [method for method in ("zero", "mean") if config.others and method in config.replacements]
    return [*every, *(Ablation("others", method, "full") for method in alone)]


def measure_importance(config: ImportanceConfig, trained: TrainedModel) -> None:
    """Write ablations and importance; a model without heads has neither.

    Cost: eight reruns of later layers a head and sequence, and two for each resample, unless the study leaves some out:
    with heads times sequences, which `max_reruns` bounds, times a pass, which grows in layers and vocabulary.
    Checkpoints don't count.

    Raises:
        UserError: the text is too short for one sequence.
    """
    model = trained.model
    if not (n_heads := len(heads_of(model))):
        return
    text, documents = trained.evaluation_text(windows_within_budget(config.windows, config.max_reruns, n_heads))
    other_text = trained.reference_text(config.reference_windows).sequences
    mean = mean_z(model, other_text)
    replacements: dict[str, Callable[[], Sequence[Replacement]]] = {
        "zero": lambda: [zero_z(model)],
        "mean": lambda: [mean],
        "position_mean": lambda: [mean_z(model, other_text, by_position=True)],
        "resample": lambda: other_sequences(len(text), config.resamples, config.seed),
    }
    there, ablations = mask_without(model, removed_heads(model)), ablations_of(config)
    effects: dict[Ablation, Effects] = {}
    for method in config.replacements:
        of_method = [ablation for ablation in ablations if ablation.method == method]

        def tell(fraction: float, before: int = len(effects), own: int = len(of_method)) -> None:
            trained.on_progress(0.8 * (before + fraction * own) / len(ablations))

        effects |= ablation_effects(model, text, of_method, {method: replacements[method]()}, there, on_progress=tell)
    scores = {
        name: [own.mean(1) for own in effects[ablation].loss_nats]
        for name, ablation in SCORES.items()
        if ablation in effects
    }
    inputs = ScoringInputs(model, text, mean, there)
    scores |= {method: head_scores(method, inputs) for method in METHODS if method not in SCORES}
    trained.write(
        "ablations", [row for ablation, own in effects.items() for row in _ablation_rows(ablation, own, documents)]
    )
    trained.write("importance", [row for method, own in scores.items() for row in importance_rows(method, own)])


def _ablation_rows(ablation: Ablation, effects: Effects, documents: Int[Tensor, "sequence"]) -> list[dict[str, Any]]:
    """Rows of `ablations`, one a head."""
    loss, kl = torch.cat(effects.loss_nats), torch.cat(effects.kl_nats)
    effect = clustered_mean(loss, documents)
    low, high = effect.interval()
    columns = {"loss_effect_nats": effect.mean, "ci_low_nats": low, "ci_high_nats": high, "kl_nats": kl.mean(1)}
    listed = {name: column.tolist() for name, column in columns.items()}
    return head_rows(effects.loss_nats, listed, **ablation._asdict(), n_sequences=loss.shape[1])
