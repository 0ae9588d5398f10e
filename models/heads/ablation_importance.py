"""Importance by ablation: the rise of the loss, nats per token, when a head's output is replaced."""

from collections.abc import Sequence

from headstream.models.heads.ablation import Ablation, Replacement, ablation_effects, other_sequences, zero_z
from headstream.models.heads.scoring_inputs import HeadScores, ScoringInputs


def ablation_zero(inputs: ScoringInputs) -> HeadScores:
    """Effect on the loss of replacing a head's output by zero, nats per token."""
    return _mean_effects(inputs, [zero_z(inputs.model)])


def ablation_mean(inputs: ScoringInputs) -> HeadScores:
    """Effect on the loss of replacing a head's output by its mean on other text, nats per token."""
    return _mean_effects(inputs, [inputs.fill])


def ablation_resample(inputs: ScoringInputs) -> HeadScores:
    """Effect on the loss of replacing a head's output by that on other sequences, nats per token; NaN if none."""
    return _mean_effects(inputs, other_sequences(len(inputs.text), draws=5, seed=0))


def _mean_effects(inputs: ScoringInputs, replacements: Sequence[Replacement]) -> HeadScores:
    ablation = Ablation("head", "replaced", "full")
    found = ablation_effects(
        inputs.model, inputs.text, [ablation], {"replaced": replacements}, inputs.head_mask, inputs.fill
    )
    return [effects.mean(1) for effects in found[ablation].loss_nats]
