"""The hard-concrete distribution: numbers in 0..1 that are often exactly 0 or 1, and still have a gradient.

A gate has one parameter, log_alpha; gates have any shape. Source: Louizos et al. 2018, Learning Sparse Neural Networks
through L0 Regularization; temperature and stretch as in Voita et al. 2019.
"""

import math

from jaxtyping import Float
from torch import Tensor

TEMPERATURE, LOW, HIGH = 0.33, -0.1, 1.1
OPEN_LOG_ALPHA = math.log(-HIGH / LOW)  # a gate without noise just reaches 1: open with probability 0.96


def noisy(log_alpha: Float[Tensor, "*#gates"], uniform: Float[Tensor, "*gates"]) -> Float[Tensor, "*gates"]:
    """log_alpha with noise from random numbers in 0..1, for which `gates_without_noise` gives sampled gates."""
    return (uniform.logit() + log_alpha) / TEMPERATURE


def sampled_gates(log_alpha: Float[Tensor, "*#gates"], uniform: Float[Tensor, "*gates"]) -> Float[Tensor, "*gates"]:
    """Gates as in training, sampled with random numbers in 0..1."""
    return gates_without_noise(noisy(log_alpha, uniform))


def gates_without_noise(log_alpha: Float[Tensor, "*gates"]) -> Float[Tensor, "*gates"]:
    """Gates as after training, without noise."""
    return log_alpha.sigmoid().mul(HIGH - LOW).add(LOW).clamp(0, 1)


def open_probability(log_alpha: Float[Tensor, "*gates"]) -> Float[Tensor, "*gates"]:
    """Probability that a sampled gate is not 0."""
    return (log_alpha - TEMPERATURE * math.log(-LOW / HIGH)).sigmoid()
