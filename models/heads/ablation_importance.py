"""Importance by ablation: the rise of the loss, nats per token, when a head's output is replaced."""

from collections.abc import Sequence

from headstream.models.heads.ablation import Ablation, Replacement, ablation_effects, other_sequences, zero_z
from headstream.models.heads.evidence import Evidence, HeadScores


def ablation_zero(evidence: Evidence) -> HeadScores:
    """Effect on the loss of replacing a head's output by zero, nats per token."""
    return _mean_effects(evidence, [zero_z(evidence.model)])


def ablation_mean(evidence: Evidence) -> HeadScores:
    """Effect on the loss of replacing a head's output by its mean on other text, nats per token."""
    return _mean_effects(evidence, [evidence.fill])


def ablation_resample(evidence: Evidence) -> HeadScores:
    """Effect on the loss of replacing a head's output by that on other sequences, nats per token; NaN if none."""
    return _mean_effects(evidence, other_sequences(len(evidence.text), draws=5, seed=0))


def _mean_effects(evidence: Evidence, replacements: Sequence[Replacement]) -> HeadScores:
    ablation = Ablation("head", "replaced", "full")
    found = ablation_effects(
        evidence.model, evidence.text, [ablation], {"replaced": replacements}, evidence.head_mask, evidence.fill
    )
    return [effects.mean(1) for effects in found[ablation].loss_nats]
