"""The number of training steps, and the steps after which weights are kept."""

import numpy as np

from headstream.models.architecture import Architecture
from headstream.tasks.study.training_config import TrainingConfig


def step_count(architecture: Architecture, config: TrainingConfig) -> int:
    """Number of steps that train on about `config.tokens` tokens."""
    return max(1, round(config.tokens / (config.batch_size * architecture.n_ctx)))


def kept_steps(n_steps: int, n_checkpoints: int) -> list[int]:
    """Steps to keep weights of: 0, then log-spaced from a 64th of the run to its end.

    >>> kept_steps(1200, 6)
    [0, 19, 53, 150, 424, 1200]
    """
    spaced = np.geomspace(max(1.0, n_steps / 64), n_steps, n_checkpoints - 1)
    return sorted({0, n_steps, *np.round(spaced).astype(int).tolist()})
