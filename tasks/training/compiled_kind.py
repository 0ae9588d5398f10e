"""Kinds of trainings: those of a kind run the same compiled code."""

from dataclasses import dataclass

from headstream.models.architecture import Architecture
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.training.numerics import Numerics


@dataclass(frozen=True)
class Kind:
    """The settings that trainings with the same compiled code share."""

    architecture: Architecture  # with one layer for each number of heads
    batch_size: int
    numerics: Numerics


def kind_of(architecture: Architecture, config: TrainingConfig, numerics: Numerics) -> Kind:
    """The kind of a training."""
    heads = tuple(sorted(set(architecture.heads_per_layer)))
    one_of_each = {"n_layers": len(heads), "n_heads": heads, "d_head": architecture.head_width}
    return Kind(architecture.model_copy(update=one_of_each), config.batch_size, numerics)
