"""Differences by their own intervals, against scipy's tests and on paper."""

import numpy as np
import pytest
from scipy import stats

from headstream.tasks.report.differences import difference, extreme, mean_difference


def values(*of_seeds: float, first: int = 0) -> dict[int, float]:
    return dict(enumerate(of_seeds, start=first))


def test_groups_of_the_same_seeds_are_compared_seed_by_seed():
    rng = np.random.default_rng(0)
    a = rng.normal(2.6, 0.1, size=5)
    b = a + rng.normal(0.05, 0.01, size=5)
    found, expected = difference(values(*a), values(*b)), stats.ttest_rel(a, b)
    interval = expected.confidence_interval()
    assert found.mean - found.ci95 == pytest.approx(interval.low)
    assert found.mean + found.ci95 == pytest.approx(interval.high)
    assert found.chance == pytest.approx(expected.pvalue)
    assert found.chance < 0.01 < stats.ttest_ind(a, b).pvalue  # what pairing is for


def test_groups_of_other_seeds_are_compared_by_welchs_t():
    rng = np.random.default_rng(1)
    a, b = rng.normal(2.6, 0.1, size=5), rng.normal(2.5, 0.3, size=3)
    found, t = difference(values(*a), values(*b, first=3)), stats.ttest_ind(a, b, equal_var=False).statistic
    assert found.mean == pytest.approx(a.mean() - b.mean())
    assert found.chance == pytest.approx(2 * stats.t.sf(abs(t), df=2))
    assert found.ci95 == pytest.approx(stats.t.isf(0.025, df=2) * found.mean / t)


@pytest.mark.parametrize("spread", [0.3, 3])  # of the larger group, beside the smaller one's
@pytest.mark.parametrize("likeness", [0, 0.7])  # of models of one seed
def test_equal_groups_differ_no_more_often_than_is_said(spread, likeness):
    """At the level of fourteen comparisons, three seeds against seventeen."""
    rng, n, level = np.random.default_rng(3), 1500, 0.05 / 14
    shared, own = rng.normal(size=(n, 17)), rng.normal(size=(2, n, 17))
    few, many = np.sqrt(likeness) * shared + np.sqrt(1 - likeness) * own
    pairs = zip(few[:, :3], spread * many, strict=True)
    n_apart = sum(difference(values(*a), values(*b)).chance < level for a, b in pairs)
    assert n_apart <= stats.binom.ppf(0.99, n, level)


def test_what_more_seeds_of_one_group_tell_is_not_left_out():
    """Losses as once measured: without layers, and of seventeen seeds of two, of which three alone show too little."""
    without = values(3.6512, 3.6507, 3.6484)
    seeds = (2.78, 2.53, 2.58, 2.49, 2.55, 2.61, 2.66, 2.48, 2.52, 2.57, 2.62, 2.5, 2.55, 2.7, 2.49, 2.55, 2.58)
    level = 0.05 / 14  # of as many comparisons
    assert difference(without, values(*seeds)).chance < level < difference(without, values(*seeds[:3])).chance
    assert (
        extreme(
            {"0L": without, "2L": values(*seeds), **{name: values(2, 2.1, 2.2) for name in "abc"}}, highest=True
        ).ties
        == []
    )


def test_under_three_seeds_there_is_no_interval():
    assert difference(values(1, 2), values(3, 4)) is None
    assert difference(values(1, 2, 3), values(3, 4, first=1)) is None
    assert mean_difference([1.0, 2.0]) is None
    lowest = extreme({"a": values(1, 2), "b": values(0)})
    assert lowest[:5] == ("b", 0, ["a"], 1, False)
    assert lowest.reservation == ", which other seeds may change (an interval needs three)"


def test_equal_differences_have_no_width():
    assert difference(values(1, 2, 3), values(2, 3, 4)) == (-1, 0, 0)
    assert difference(values(1, 1, 1), values(1, 1, 1)) == (0, 0, 1)


def test_the_lowest_is_not_told_from_what_overlaps():
    """Losses of eight and sixteen heads as once measured: 2.631 ± 0.078 and 2.628 ± 0.035."""
    losses = {"2": values(3.176, 3.162, 3.168), "8": values(2.623, 2.665, 2.603), "16": values(2.633, 2.639, 2.612)}
    lowest, highest = extreme(losses), extreme(losses, highest=True)
    assert lowest[:5] == ("16", pytest.approx(2.628), ["8"], 2, True)
    assert lowest.reservation == ", though its difference from 8 isn't significant (corrected for 2 comparisons)"
    assert highest[:5] == ("2", pytest.approx(3.1687, abs=1e-4), [], 2, True)
    assert highest.reservation == ""
    assert extreme({"a": {}, "b": {}}) is None


def test_many_ties_are_counted():
    groups = {name: values(1, 2, 3) for name in "abcde"}
    together = " (corrected for {} comparisons)"
    assert extreme(groups).reservation == ", though it differs significantly from none of the others" + together.format(
        4
    )
    assert extreme(groups, each=True).reservation == ", though it differs significantly from none of the others"
    groups |= {"f": values(8, 9, 10)}
    most = ", though its differences from 4 of 5 others aren't significant"
    assert extreme(groups).reservation == most + together.format(5)
    three = extreme({name: groups[name] for name in "abc"})
    assert (
        three.reservation == ", though it differs significantly from none of the others (corrected for 2 comparisons)"
    )
    few = extreme({"a": values(1, 2, 3), "b": {0: 2.5}, "c": values(8, 9, 10), "d": values(1, 2, 3.5)})
    assert few.reservation == (
        ", though its difference from d isn't significant (corrected for 3 comparisons), and b has too few seeds to be"
        " compared"
    )
    two = extreme({name: groups[name] for name in "ab"})
    assert two.reservation == ", though its difference from b isn't significant", "nothing else was compared"
    assert not extreme(groups).says_something
    assert extreme(groups, highest=True).says_something


def test_each_by_itself_is_told_apart_as_by_the_interval_of_its_difference():
    """16 and 32 heads as once measured: 0.124 ± 0.099 apart, which four comparisons together don't tell."""
    others = {name: values(3, 3.01, 3.02) for name in "abc"}
    losses = others | {"16": values(2.45, 2.45, 2.45), "32": values(2.53, 2.59, 2.61)}
    apart = difference(losses["32"], losses["16"])
    assert apart.ci95 < apart.mean
    assert extreme(losses).ties == ["32"]
    assert extreme(losses, each=True).ties == []


@pytest.mark.parametrize("means", [[0, 0], [0, 0, 0, 0, 0], [0, 1, 1, 1, 1], [0, 0, 9, 9], [0, 0.5, 1, 1.5, 2, 2.5]])
def test_the_truly_lowest_is_among_those_named(means):
    """In 95 % of studies or more, whatever the means of the groups; of two equal ones, one stands out in 5 %."""
    rng = np.random.default_rng(2)
    draws = rng.normal(means, 1, size=(2000, 3, len(means))).transpose(0, 2, 1)
    named = [extreme({str(i): values(*seeds) for i, seeds in enumerate(study)}) for study in draws]
    n_missed = sum("0" not in (lowest.label, *lowest.ties) for lowest in named)
    assert n_missed <= stats.binom.ppf(0.99, 2000, 0.05)
    if len(means) == 2:
        assert sum(not lowest.ties for lowest in named) <= stats.binom.ppf(0.99, 2000, 0.05)
