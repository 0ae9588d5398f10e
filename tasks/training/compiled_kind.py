"""Kinds of trainings: those of a kind run the same compiled code."""

from dataclasses import dataclass

from headstream.models.architecture import Architecture
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.training.numerics import Numerics


@dataclass(frozen=True)
class Kind:
    """The settings that trainings with the same compiled code share."""

    architecture: Architecture  # with one layer of each kind: number of heads, and window
    batch_size: int
    numerics: Numerics


def kind_of(architecture: Architecture, config: TrainingConfig, numerics: Numerics) -> Kind:
    """The kind of a training."""
    windowed = architecture.windowed_layers
    kinds = sorted({(n, windowed and i in windowed) for i, n in enumerate(architecture.heads_per_layer)})
    one_of_each = {
        **{"n_layers": len(kinds), "n_heads": tuple(n for n, _ in kinds), "d_head": architecture.head_width},
        "windowed_layers": windowed and tuple(i for i, (_, is_windowed) in enumerate(kinds) if is_windowed),
    }
    return Kind(architecture.model_copy(update=one_of_each), config.batch_size, numerics)
