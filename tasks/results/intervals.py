"""95 % intervals of what a few seeds give, each fit for its quantity: it holds nothing that the quantity can't be."""

from collections.abc import Callable
from math import inf, sqrt, tanh
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

# SciPy takes half a second to import, and a plan asks for no interval: it is imported where it computes.
TAIL = 0.025  # on each side of an interval
LIKENESS = 0.3  # intraclass correlation that heads of one model are taken to have, where the models don't show more
SPEARMAN = 1.06  # variance of Fisher's z of rank correlations, times n - 3 (Fieller, Hartley and Pearson 1957)

SeedValues = Float[np.ndarray, " seed"]
Range = tuple[float, float]


class Interval(NamedTuple):
    """An estimate and the ends of its 95 % interval."""

    estimate: float
    low: float
    high: float


def mean_interval(values: SeedValues, within: Range = (-inf, inf)) -> Interval:
    """Student's t over seeds, cut off where the quantity ends."""
    return _cut(float(values.mean()), _half_width(values), within)


def fraction_interval(values: SeedValues, counted: SeedValues) -> Interval:
    """Student's t of fractions that move in steps of one over `counted`: a step to each side at least."""
    return _cut(float(values.mean()), max(_half_width(values), float((1 / counted).max())), (0, 1))


def share_interval(values: SeedValues, counted: SeedValues) -> Interval:
    """The share of what was counted, models as clusters.

    Clopper and Pearson's interval of as many independent trials as heads of models that are LIKENESS alike make up, or
    Student's t over models where that reaches further. One thing counted a model gives the exact interval.
    """
    from scipy.special import betaincinv

    share, n = float(values.mean()), float((counted / (1 + (counted - 1) * LIKENESS)).sum())
    hits, half = share * n, _half_width(values) if (counted > 1).any() else 0.0
    low = float(betaincinv(hits, n - hits + 1, TAIL)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - TAIL)) if hits < n else 1.0
    return Interval(share, max(0.0, min(low, share - half)), min(1.0, max(high, share + half)))


def correlation_interval(values: SeedValues, counted: SeedValues) -> Interval:
    """Rank correlations over `counted` heads, through Fisher's z: never narrower than that many heads allow."""
    from scipy.special import ndtri

    next_to_one = 1 - 6 / (counted * (counted**2 - 1))  # half way from 1 to the next value that ranks can give
    z = np.arctanh(np.clip(values, -next_to_one, next_to_one))
    of_heads = -float(ndtri(TAIL)) * sqrt(SPEARMAN / float(np.maximum(counted - 3, 1).sum()))
    mean, half = float(z.mean()), max(_half_width(z), of_heads)
    return Interval(tanh(mean), tanh(mean - half), tanh(mean + half))


OF_COUNTED: dict[str, Callable[[SeedValues, SeedValues], Interval]] = {
    "fraction": fraction_interval,
    "share": share_interval,
    "correlation": correlation_interval,
}
QUANTITIES = ("mean", *OF_COUNTED)


def difference_of_shares(first: Interval, second: Interval) -> Interval:
    """The first share minus the second, as if independent (Newcombe 1998): alike ones would differ by less."""
    difference = first.estimate - second.estimate
    below = sqrt((first.estimate - first.low) ** 2 + (second.high - second.estimate) ** 2)
    above = sqrt((first.high - first.estimate) ** 2 + (second.estimate - second.low) ** 2)
    return _cut_ends(difference, difference - below, difference + above, (-1, 1))


def _half_width(values: SeedValues) -> float:
    from scipy.special import stdtrit

    return -float(stdtrit(len(values) - 1, TAIL)) * float(values.std(ddof=1)) / sqrt(len(values))


def _cut(estimate: float, half_width: float, within: Range) -> Interval:
    return _cut_ends(estimate, estimate - half_width, estimate + half_width, within)


def _cut_ends(estimate: float, low: float, high: float, within: Range) -> Interval:
    return Interval(estimate, max(low, within[0]), min(high, within[1]))
