"""One cell of a study's grid: a model to train."""

from dataclasses import dataclass

from models.architecture import Architecture
from tasks.training_config import TrainingConfig


@dataclass(frozen=True)
class Cell:
    """A model of the grid; the label says where it is on the axes, such as `n_layers=2 seed=0`."""

    label: str
    architecture: Architecture
    training: TrainingConfig
