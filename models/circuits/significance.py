"""The probability that chance gives pairs of heads their scores of composition."""

import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.circuits.composition import Composition


def chance_of_rotated(now: Composition) -> Float[Tensor, "pair 3"]:
    """The probability that a writer turned at random scores as much: the upper tail of the gamma distribution.

    Its mean and variance are those of the null; the tail of a normal one is far too thin.
    """
    shape = now.null_mean**2 / now.null_sd**2
    return torch.special.gammaincc(shape, now.score**2 * shape / now.null_mean)


def chance_of_initial(now: Composition, initial: Composition) -> Float[Tensor, "pair 3"]:
    """The probability of as large a rise since the initialisation if training had only turned the writer."""
    change = now.score**2 - initial.score**2
    return torch.special.ndtr(-change / (now.null_sd**2 + initial.null_sd**2).sqrt())


def chance_of_either(now: Composition, initial: Composition | None) -> Float[Tensor, "pair 3"]:
    """The larger of both chances: a pair composes when neither a turned writer nor turning in training explains it.

    Of a model whose initialisation nobody kept, the first alone.
    """
    turned = chance_of_rotated(now)
    return turned if initial is None else torch.maximum(turned, chance_of_initial(now, initial))
