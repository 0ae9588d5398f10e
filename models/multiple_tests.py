"""Multiple testing: significance among many tests at once."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def holm_adjusted(chance: Float[Tensor, "*test"]) -> Float[Tensor, "*test"]:
    """The p-values of tests, adjusted for their number by Holm's rule; NaN stands for no test.

    With probability 1 - level or more, no test whose null hypothesis is true gets an adjusted p-value up to that level.
    Source: Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure.
    """
    ranked, order = chance.flatten().sort(stable=True)  # NaN last
    n_left = ranked.isfinite().sum() - torch.arange(len(ranked), device=chance.device)
    adjusted = (ranked * n_left).cummax(0).values.clamp(max=1).where(ranked.isfinite(), torch.nan)
    return torch.empty_like(adjusted).scatter_(0, order, adjusted).reshape(chance.shape)


def significant(chance: Float[Tensor, "*test"], level: float) -> Bool[Tensor, "*test"]:
    """True for tests that are significant by Holm's rule."""
    return holm_adjusted(chance) <= level
