"""What groups of models differ in: differences by their own intervals, and what the lowest of several can be told from.

Models of one seed start and go on alike, so groups that have the same seeds are compared seed by seed. Where one
has more, what these tell counts more than that likeness.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev, variance
from typing import NamedTuple

from scipy.special import stdtr, stdtrit

from headstream.tasks.words.lists import listed

ENOUGH = 3  # seeds for an interval, as in the macro ci95
LEVEL = 0.05
ONE_SEED = ", which other seeds may change (an interval needs three)"
_MAX_NAMED = 3  # groups in a sentence

ValueBySeed = Mapping[int, float]  # of a group's models, by seed


class Difference(NamedTuple):
    """A mean difference, half the width of its 95 % interval, and how often chance gives one as large."""

    mean: float
    ci95: float
    chance: float


class Extreme(NamedTuple):
    """The group with the lowest or highest mean, and the others that it can't be told from, nearest first."""

    label: str
    mean: float
    ties: Sequence[str]
    n_others: int
    is_tested: bool  # whether it could be compared with any other
    each: bool = False  # whether each other was told apart at 5 % by itself, not all of them together
    untested: Sequence[str] = ()  # of the ties, those that have too few seeds to be compared with it

    def told(self, unit: str) -> str:
        """The group and its mean."""
        return f"{self.label} ({self.mean:z.2f}{unit})"

    @property
    def says_something(self) -> bool:
        """Whether it can be told from half of the others or more, as far as it could be compared."""
        return not self.is_tested or 2 * len(self.ties) <= self.n_others

    @property
    def reservation(self) -> str:
        """What a sentence that names the group must add."""
        if not self.ties:
            return ""
        if not self.is_tested:
            return ONE_SEED
        alike = [label for label in self.ties if label not in self.untested]
        parts = [f"{self._alike(alike)}{self._corrected}"] if alike else []
        if self.untested:
            have = "has" if len(self.untested) == 1 else "have"
            parts.append(f"{listed(self.untested)} {have} too few seeds to be compared")
        return f", though {', and '.join(parts)}"

    def _alike(self, labels: Sequence[str]) -> str:
        if len(labels) == self.n_others > 1:
            return "it differs significantly from none of the others"
        if len(labels) == 1:
            return f"its difference from {labels[0]} isn't significant"
        many = len(labels) > _MAX_NAMED
        named = f"{len(labels)} of {self.n_others} others" if many else listed(labels)
        return f"its differences from {named} aren't significant"

    @property
    def _corrected(self) -> str:
        return "" if self.each or self.n_others == 1 else f" (corrected for {self.n_others} comparisons)"


def difference(values: ValueBySeed, others: ValueBySeed) -> Difference | None:
    """The first group's mean minus the second's; None if one of them has fewer than three seeds.

    Seed by seed, by Student's t, if they have the same seeds; else by Welch's t with the degrees of freedom of the
    smaller group. His own approximation, at 3 seeds against 17, calls 1.8 % of equal groups different where 0.36 % are
    meant. Source: Hsu 1938, Contribution to the Theory of "Student's" t-test as Applied to the Problem of Two Samples.
    """
    if min(len(values), len(others)) < ENOUGH:
        return None
    if values.keys() == others.keys():
        return mean_difference([value - others[seed] for seed, value in values.items()])
    groups = [list(group.values()) for group in (values, others)]
    error = sqrt(sum(variance(group) / len(group) for group in groups))
    return _by_t(fmean(groups[0]) - fmean(groups[1]), error, min(map(len, groups)) - 1)


def mean_difference(differences: Sequence[float]) -> Difference | None:
    """The mean of differences, one for each seed, by Student's t; None if they are fewer than three."""
    n = len(differences)
    return _by_t(fmean(differences), stdev(differences) / sqrt(n), n - 1) if n >= ENOUGH else None


def extreme(groups: Mapping[str, ValueBySeed], highest: bool = False, each: bool = False) -> Extreme | None:
    """The group with the lowest or highest mean, and those it can't be told from; None if no group has a value.

    Which group that is depends on the values, so the others are told apart at 5 % over their number: with 95 %
    probability or more, the group that is truly lowest is named. Source: Gupta 1965, On Some Multiple Decision Rules.
    If `each`, each is told apart at 5 %, as by the interval of its difference, where such intervals stand beside it.
    """
    means = {label: fmean(values.values()) for label, values in groups.items() if values}
    if not means:
        return None
    best, *others = sorted(means, key=means.__getitem__, reverse=highest)
    found = {label: difference(groups[label], groups[best]) for label in others}
    level = LEVEL if each else LEVEL / max(1, len(others))
    ties = [label for label, apart in found.items() if apart is None or apart.chance > level]
    untested = [label for label in ties if found[label] is None]
    return Extreme(best, means[best], ties, len(others), any(found.values()), each, untested)


def _by_t(mean: float, error: float, df: float) -> Difference:
    if not error:
        return Difference(mean, 0.0, float(mean == 0))
    return Difference(mean, float(stdtrit(df, 0.975) * error), float(2 * stdtr(df, -abs(mean) / error)))
