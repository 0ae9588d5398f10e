"""Intervals of verdicts: each covers at the number of seeds it is used at, and stays inside its quantity."""

import numpy as np
import pytest
from scipy.stats import binomtest, t

from calibration.claims import rank_correlations, shares
from headstream.tasks.results.intervals import (
    Interval,
    correlation_interval,
    difference_of_shares,
    fraction_interval,
    mean_interval,
    paired_difference_of_shares,
    share_interval,
)

ENOUGH = 0.93  # coverage of what says 0.95
DRAWS = 1500
SEEDS = pytest.mark.parametrize("n_seeds", [3, 5])


def coverage(truth: float, intervals: list[Interval]) -> float:
    return float(np.mean([found.low <= truth <= found.high for found in intervals]))


@SEEDS
def test_means_cover_what_seeds_scatter_around(n_seeds):
    rng = np.random.default_rng(0)
    for scatter in (rng.normal(0.4, 0.1, (DRAWS, n_seeds)), rng.uniform(0, 0.8, (DRAWS, n_seeds))):
        assert coverage(0.4, [mean_interval(values) for values in scatter]) >= ENOUGH


def test_a_mean_has_students_interval():
    values = np.array([1.0, 2.0, 4.0])
    expected = t.interval(0.95, 2, values.mean(), values.std(ddof=1) / 3**0.5)
    assert mean_interval(values)[1:] == pytest.approx(expected)
    assert mean_interval(values, within=(0, 3))[1:] == (0, 3)


@SEEDS
@pytest.mark.parametrize("n_heads", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("likeness", [0, 0.1, 0.3])
def test_shares_of_heads_cover_with_models_as_clusters(n_seeds, n_heads, likeness):
    rng = np.random.default_rng(1)
    counted = np.full(n_seeds, float(n_heads))
    for truth in (0.05, 0.2, 0.5, 0.8, 0.95):
        draws = shares(rng, truth, likeness, n_heads, DRAWS, n_seeds)
        assert coverage(truth, [share_interval(values, counted) for values in draws]) >= ENOUGH, truth


@pytest.mark.parametrize("n_seeds", [9, 17])
@pytest.mark.parametrize(("n_heads", "likeness"), [(2, 0), (2, 0.3), (4, 0.1), (16, 0), (16, 0.3)])
def test_from_nine_seeds_on_shares_are_no_wider_than_they_must_be(n_seeds, n_heads, likeness):
    """Coverage of 0.935 to 0.965 over shares; 4,500 draws tell 0.95 from 0.935."""
    rng = np.random.default_rng(1)
    counted, truths = np.full(n_seeds, float(n_heads)), np.linspace(0.1, 0.9, 9)
    covered = [
        coverage(truth, [share_interval(own, counted) for own in shares(rng, truth, likeness, n_heads, 500, n_seeds)])
        for truth in truths
    ]
    assert 0.935 <= np.mean(covered) <= 0.965


@pytest.mark.parametrize("n_seeds", [3, 5, 9, 17])
def test_differences_from_controls_of_the_same_seeds_cover(n_seeds):
    """Where a seed's heads are likely to do something, those that it began with are, too."""
    rng, counted = np.random.default_rng(2), np.full(n_seeds, 8.0)
    for trained, random in ((0.5, 0.5), (0.8, 0.5), (0.9, 0.1)):
        common = rng.normal(size=(DRAWS, n_seeds))
        of_seed = [np.clip(truth + 0.1 * common, 0.02, 0.98) for truth in (trained, random)]
        first, second = (rng.binomial(8, own) / 8 for own in of_seed)
        truth = float(of_seed[0].mean() - of_seed[1].mean())
        found = [paired_difference_of_shares(a, b, counted) for a, b in zip(first, second, strict=True)]
        assert coverage(truth, found) >= ENOUGH, (trained, random)


def test_a_control_that_goes_along_narrows_the_difference():
    values = np.array([0.25, 0.5, 0.75, 0.5, 0.25, 0.5, 0.75, 0.5, 0.625])
    counted = np.full(9, 8.0)
    along, against = (paired_difference_of_shares(values, own, counted) for own in (values - 0.2, 0.8 - values))
    assert along.high - along.low < 0.5 * (against.high - against.low)


@SEEDS
@pytest.mark.parametrize("n_heads", [4, 8])
def test_differences_of_shares_cover(n_seeds, n_heads):
    rng = np.random.default_rng(2)
    counted = np.full(n_seeds, float(n_heads))
    for trained, random in ((0.5, 0.5), (0.8, 0.5), (0.95, 0.1), (0.95, 0.95)):
        first, second = (shares(rng, truth, 0.1, n_heads, DRAWS, n_seeds) for truth in (trained, random))
        found = [
            difference_of_shares(share_interval(a, counted), share_interval(b, counted))
            for a, b in zip(first, second, strict=True)
        ]
        assert coverage(trained - random, found) >= ENOUGH, (trained, random)


@pytest.mark.parametrize(("hits", "n"), [(0, 3), (3, 3), (2, 5), (17, 17)])
def test_a_share_of_models_has_the_exact_interval(hits, n):
    found = share_interval(np.array([1.0] * hits + [0.0] * (n - hits)), np.ones(n))
    exact = binomtest(hits, n).proportion_ci(method="exact")
    assert found[1:] == pytest.approx((exact.low, exact.high))


@SEEDS
@pytest.mark.parametrize("n_heads", [8, 16, 32])
def test_rank_correlations_cover_through_fishers_z(n_seeds, n_heads):
    rng = np.random.default_rng(3)
    counted = np.full(n_seeds, float(n_heads))
    for truth in (0.0, 0.5, 0.8):
        values = rank_correlations(rng, truth, n_heads, DRAWS, n_seeds)
        limit = 1 - 6 / (n_heads * (n_heads**2 - 1))
        expected = np.tanh(np.arctanh(np.clip(values, -limit, limit)).mean())  # what such heads give on average
        assert coverage(expected, [correlation_interval(of_seeds, counted) for of_seeds in values]) >= ENOUGH


@SEEDS
@pytest.mark.parametrize("n_heads", [8, 16])
def test_fractions_in_steps_cover(n_seeds, n_heads):
    """How many of the heads can go, rounded down to whole heads, where models differ by a head or so."""
    rng = np.random.default_rng(4)
    for truth in (0.1, 0.3, 0.6):
        draws = np.floor(n_heads * rng.normal(truth, 0.1, (DRAWS, n_seeds)).clip(0, 1)) / n_heads
        found = [fraction_interval(values, np.full(n_seeds, float(n_heads))) for values in draws]
        assert coverage(float(draws.mean()), found) >= ENOUGH, truth


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("interval", [share_interval, fraction_interval, correlation_interval])
def test_equal_values_are_not_taken_for_certainty(interval, value):
    found = interval(np.full(3, value), np.full(3, 8.0))
    assert found.high - found.low > 0.02
    assert found.low <= found.estimate <= found.high


def test_no_interval_reaches_what_its_quantity_cannot_be():
    scattered = np.array([0.0, 1.0, 0.1])
    for interval in (share_interval, fraction_interval):
        found = interval(scattered, np.full(3, 4.0))
        assert 0 <= found.low < found.high <= 1
    found = correlation_interval(np.array([-1.0, 1.0, 0.2]), np.full(3, 4.0))
    assert -1 <= found.low < found.high <= 1
    all_and_none = [share_interval(np.full(3, share), np.full(3, 1.0)) for share in (1.0, 0.0)]
    assert -1 <= difference_of_shares(*all_and_none).low < difference_of_shares(*all_and_none).high <= 1
