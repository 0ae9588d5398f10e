"""Confidence intervals of means over sequences by the bootstrap."""

import torch
from jaxtyping import Float
from torch import Tensor

CHUNK = 256  # resampled sets held at once


def bootstrap_ci(
    effects: Float[Tensor, "*quantities sequence"], n_resamples: int, generator: torch.Generator
) -> tuple[Float[Tensor, "*quantities"], Float[Tensor, "*quantities"]]:
    """95 % percentile interval of the mean of each quantity over sequences; NaN for a single sequence.

    An effect is a difference within a sequence, so intervals are paired; all quantities share their resampled sets.
    Source: Efron & Tibshirani 1993, chapter 13.
    """
    n = effects.shape[-1]
    if n < 2:
        missing = torch.full(effects.shape[:-1], torch.nan, dtype=effects.dtype)
        return missing, missing.clone()
    means = []
    for start in range(0, n_resamples, CHUNK):
        drawn = torch.randint(n, (min(CHUNK, n_resamples - start), n), generator=generator)
        counts = torch.zeros(drawn.shape, dtype=effects.dtype).scatter_add_(
            1, drawn, torch.ones_like(drawn, dtype=effects.dtype)
        )
        means.append(effects @ counts.T / n)
    low, high = torch.cat(means, dim=-1).quantile(torch.tensor([0.025, 0.975], dtype=effects.dtype), dim=-1)
    return low, high
