"""Intervals of what a few seeds give, each fit for its quantity: it holds nothing that the quantity can't be.

They are of 95 %, unless a smaller tail is asked for.
"""

from collections.abc import Callable
from math import inf, sqrt, tanh
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

# SciPy takes half a second to import, and a plan asks for no interval: it is imported where it computes.
TAIL = 0.025  # on each side of an interval of 95 %
LIKENESS = 0.3  # intraclass correlation that heads of one model are taken to have, where it can't be estimated
SEEDS_FOR_LIKENESS = 9  # from which on it is estimated
MIN_UNLIKE = 3  # models that must differ from those that are all alike, all heads or none, for an estimate
MIN_DESIGN_EFFECT = 0.3  # of the variance between models over that of independent heads: chance can make it smaller
SPEARMAN = 1.06  # variance of Fisher's z of rank correlations, times n - 3 (Fieller, Hartley and Pearson 1957)

SeedValues = Float[np.ndarray, " seed"]
Range = tuple[float, float]


class Interval(NamedTuple):
    """An estimate and the ends of its interval."""

    estimate: float
    low: float
    high: float


def mean_interval(values: SeedValues, within: Range = (-inf, inf), tail: float = TAIL) -> Interval:
    """Student's t over seeds, cut off where the quantity ends."""
    return _cut(float(values.mean()), _half_width(values, tail), within)


def fraction_interval(values: SeedValues, counted: SeedValues, tail: float = TAIL) -> Interval:
    """Student's t of fractions that move in steps of one over `counted`.

    To each side at least a step, which equal values of few seeds hide; from SEEDS_FOR_LIKENESS seeds on, its error.
    """
    step = float((1 / counted).max()) / (sqrt(len(values)) if len(values) >= SEEDS_FOR_LIKENESS else 1)
    return _cut(float(values.mean()), max(_half_width(values, tail), step), (0, 1))


def share_interval(values: SeedValues, counted: SeedValues, tail: float = TAIL) -> Interval:
    """The share of what was counted, models as clusters.

    One thing counted a model gives the exact interval of Clopper and Pearson. Of several, it is that interval of as
    many independent trials as heads of models that are LIKENESS alike make up, or Student's t over models where that
    reaches further; from SEEDS_FOR_LIKENESS seeds on, Wilson's interval of as many as the scatter of models shows.
    """
    if (counted > 1).any() and len(values) >= SEEDS_FOR_LIKENESS:
        return _wilson_interval(values, counted, tail)
    from scipy.special import betaincinv

    share, n = float(values.mean()), float((counted / (1 + (counted - 1) * LIKENESS)).sum())
    hits, half = share * n, _half_width(values, tail) if (counted > 1).any() else 0.0
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
    return Interval(share, max(0.0, min(low, share - half)), min(1.0, max(high, share + half)))


def _wilson_interval(values: SeedValues, counted: SeedValues, tail: float) -> Interval:
    """Wilson's interval of an effective number of trials, its quantile that of t as far as models tell the variance.

    The design effect is the variance between models over that of independent trials (Kish 1965); where nearly all
    models are all heads or none, scatter tells little, and LIKENESS counts.
    """
    from scipy.special import stdtrit

    share, n, each = float(values.mean()), len(values), float(1 / (1 / counted).mean())
    independent = share * (1 - share) / each
    effect = max(float(values.var(ddof=1)) / independent, MIN_DESIGN_EFFECT) if independent else 1.0
    if min((values > 0).sum(), (values < 1).sum()) < MIN_UNLIKE:
        effect = max(effect, 1 + (each - 1) * LIKENESS)
    trials, q = n * each / effect, -float(stdtrit((n - 1) * (each + 1) / max(each - 1, 1e-9), tail))
    middle = (share + q**2 / (2 * trials)) / (1 + q**2 / trials)
    half = q / (1 + q**2 / trials) * sqrt(share * (1 - share) / trials + q**2 / (4 * trials**2))
    return Interval(share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def correlation_interval(values: SeedValues, counted: SeedValues, tail: float = TAIL) -> Interval:
    """Rank correlations over `counted` heads, through Fisher's z: never narrower than that many heads allow."""
    from scipy.special import ndtri

    next_to_one = 1 - 6 / (counted * (counted**2 - 1))  # half way from 1 to the next value that ranks can give
    z = np.arctanh(np.clip(values, -next_to_one, next_to_one))
    of_heads = -float(ndtri(tail)) * sqrt(SPEARMAN / float(np.maximum(counted - 3, 1).sum()))
    mean, half = float(z.mean()), max(_half_width(z, tail), of_heads)
    return Interval(tanh(mean), tanh(mean - half), tanh(mean + half))


OF_COUNTED: dict[str, Callable[[SeedValues, SeedValues, float], Interval]] = {
    "fraction": fraction_interval,
    "share": share_interval,
    "correlation": correlation_interval,
}
QUANTITIES = ("mean", *OF_COUNTED)


def paired_difference_of_shares(
    values: SeedValues, controls: SeedValues, counted: SeedValues, tail: float = TAIL
) -> Interval:
    """The share of what was counted minus that of its control, which has the same seeds.

    How much the two go together is estimated; of few seeds, only in part.
    """
    n = len(values)
    both = float(values.std()) * float(controls.std())
    alike = float(np.cov(values, controls, ddof=0)[0, 1]) / both if both else 0.0
    known = 1.0 if n >= SEEDS_FOR_LIKENESS else (n - 1) / (n + 3)
    first, second = (share_interval(own, counted, tail) for own in (values, controls))
    return difference_of_shares(first, second, known * alike)


def difference_of_shares(first: Interval, second: Interval, alike: float = 0.0) -> Interval:
    """The first share minus the second, which correlate so much (Newcombe 1998, methods for paired data)."""
    difference = first.estimate - second.estimate

    def distance(own: float, other: float) -> float:
        return sqrt(max(0.0, own**2 - 2 * alike * own * other + other**2))

    below = distance(first.estimate - first.low, second.high - second.estimate)
    above = distance(first.high - first.estimate, second.estimate - second.low)
    return _cut_ends(difference, difference - below, difference + above, (-1, 1))


def _half_width(values: SeedValues, tail: float) -> float:
    from scipy.special import stdtrit

    return -float(stdtrit(len(values) - 1, tail)) * float(values.std(ddof=1)) / sqrt(len(values))


def _cut(estimate: float, half_width: float, within: Range) -> Interval:
    return _cut_ends(estimate, estimate - half_width, estimate + half_width, within)


def _cut_ends(estimate: float, low: float, high: float, within: Range) -> Interval:
    return Interval(estimate, max(low, within[0]), min(high, within[1]))
