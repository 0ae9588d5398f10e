"""Intervals that decide claims, at the seeds they are used at, and claims about models no better than random ones."""

from collections.abc import Callable
from functools import partial

import duckdb
import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import pearsonr, rankdata

from calibration.trials import Kind, Trial
from headstream.tasks.results.claim_files import read_claims
from headstream.tasks.results.claim_values import Value
from headstream.tasks.results.claim_verdicts import of_configuration
from headstream.tasks.results.intervals import (
    Interval,
    correlation_interval,
    fraction_interval,
    mean_interval,
    paired_difference_of_shares,
    share_interval,
)
from headstream.tasks.results.views import create_tables_and_views
from headstream.tasks.study.until_decided import LOOKS

SEEDS = (3, 5, 9, 17)
SHARES = (0.05, 0.2, 0.5, 0.8, 0.95)
PRUNABLE = (0.1, 0.3, 0.6)  # mean fractions of heads that can go
CORRELATIONS = (0.0, 0.5, 0.8)  # of the scores, before they are ranked

Draws = Float[np.ndarray, "draw seed"]
Rng = np.random.Generator


def shares(rng: Rng, truth: float, likeness: float, n_heads: int, n: int, n_seeds: int) -> Draws:
    """Shares of heads, of models whose own shares differ: beta-binomial, with an intraclass correlation."""
    own = np.full((n, n_seeds), truth)
    if likeness:
        scale = 1 / likeness - 1
        own = rng.beta(truth * scale, (1 - truth) * scale, own.shape)
    return rng.binomial(n_heads, own) / n_heads


def rank_correlations(rng: Rng, truth: float, n_heads: int, n: int, n_seeds: int) -> Draws:
    """Between two scores of heads, which correlate so much."""
    first, other = rng.normal(size=(2, n, n_seeds, n_heads))
    second = truth * first + (1 - truth**2) ** 0.5 * other
    return pearsonr(rankdata(first, axis=-1), rankdata(second, axis=-1), axis=-1).statistic


def covered(truth: float, intervals: list[Interval]) -> int:
    """How many hold it."""
    return sum(found.low <= truth <= found.high for found in intervals)


def cover_shares(likeness: float, n_heads: int, n_seeds: int, n: int) -> int:
    """Shares of heads with models as clusters."""
    rng, counted, each = np.random.default_rng(0), np.full(n_seeds, float(n_heads)), n // len(SHARES)
    return sum(
        covered(truth, [share_interval(own, counted) for own in shares(rng, truth, likeness, n_heads, each, n_seeds)])
        for truth in SHARES
    )


def cover_differences(n_heads: int, n_seeds: int, n: int) -> int:
    """Shares of heads, trained minus random."""
    rng, counted, each = np.random.default_rng(0), np.full(n_seeds, float(n_heads)), n // len(SHARES)
    hits = 0
    for truth, random in zip(SHARES, SHARES[::-1], strict=True):
        drawn = (shares(rng, of, 0.1, n_heads, each, n_seeds) for of in (truth, random))
        found = [paired_difference_of_shares(own, control, counted) for own, control in zip(*drawn, strict=True)]
        hits += covered(truth - random, found)
    return hits


def cover_fractions(n_seeds: int, n: int) -> int:
    """How many of 8 heads can go, whole ones, in models that differ by a head or so."""
    rng, hits = np.random.default_rng(0), 0
    for truth in PRUNABLE:
        drawn = np.floor(8 * rng.normal(truth, 0.1, (n // len(PRUNABLE), n_seeds)).clip(0, 1)) / 8
        found = [fraction_interval(own, np.full(n_seeds, 8.0)) for own in drawn]
        hits += covered(float(drawn.mean()), found)
    return hits


def cover_correlations(n_heads: int, n_seeds: int, n: int) -> int:
    """Rank correlations through Fisher's z, whose mean is what is to be held."""
    rng, hits, limit = np.random.default_rng(0), 0, 1 - 6 / (n_heads * (n_heads**2 - 1))
    for truth in CORRELATIONS:
        drawn = rank_correlations(rng, truth, n_heads, n // len(CORRELATIONS), n_seeds)
        expected = float(np.tanh(np.arctanh(drawn.clip(-limit, limit)).mean()))
        hits += covered(expected, [correlation_interval(own, np.full(n_seeds, float(n_heads))) for own in drawn])
    return hits


def hold_shares(n_heads: int, n_seeds: int, n: int) -> int:
    """How often a share of heads exceeds that of random weights, where it is the same."""
    rng, counted, each = np.random.default_rng(0), np.full(n_seeds, float(n_heads)), n // len(SHARES)
    hits = 0
    for truth in SHARES:
        drawn = (shares(rng, truth, 0.1, n_heads, each, n_seeds) for _ in range(2))
        pairs = zip(*drawn, strict=True)
        hits += sum(paired_difference_of_shares(own, control, counted).low > 0 for own, control in pairs)
    return hits


def hold_means(n_seeds: int, n: int) -> int:
    """How often a mean exceeds that of random weights, where both scatter around the same."""
    trained, random = np.random.default_rng(0).normal(size=(2, n, n_seeds))
    return sum(mean_interval(own).low > 0 for own in trained - random)


def hold_correlations(n_heads: int, n_seeds: int, n: int) -> int:
    """How often scores that have nothing to do with each other correlate by more than 0."""
    drawn = rank_correlations(np.random.default_rng(0), 0.0, n_heads, n, n_seeds)
    return sum(correlation_interval(own, np.full(n_seeds, float(n_heads))).low > 0 for own in drawn)


def hold_between_the_ends(n_seeds: int, n: int) -> int:
    """How often head-tradeoff holds where the widest heads lose, and all other numbers of heads are alike."""
    rng, counts = np.random.default_rng(0), [1, 4, 8, 16, 32]
    shape = (n, n_seeds, len(counts))
    loss = rng.normal(2.57, 0.1, shape)
    loss[:, :, 0] = rng.normal(2.98, 0.002, shape[:2])  # as they were in a study
    place = np.indices(shape).reshape(3, -1)
    cells = pd.DataFrame({"study": "s", "seed": place[1], "n_heads": np.array(counts)[place[2]], "n_layers": 2})
    cells["d_head"] = cells["d_value"] = 128 // cells.n_heads
    cells["cell"] = [f"try={i}" for i in place[0]]
    return _holding("head-tradeoff", cells=cells.assign(d_model=128, validation_loss_nats=loss.flatten()))


def hold_beside_norms(of_norm: float, n_seeds: int, n: int) -> int:
    """How often variance-adds holds of 16 heads whose variance is noise; `of_norm` correlates with the effect."""
    rng, shape = np.random.default_rng(0), (n, n_seeds, 16)
    norm, own, variance = rng.normal(size=(3, *shape))
    effect = of_norm * norm + (1 - of_norm**2) ** 0.5 * own
    model, seed, head = np.indices(shape).reshape(3, -1)
    names = [f"{i} {j}" for i, j in zip(model, seed, strict=True)]
    place = pd.DataFrame({"model_id": names, "layer": 0, "head": head})
    scores = {"weight_norm": norm, "attention_variance": variance, "ablation_mean": effect}
    importance = pd.concat([place.assign(method=name, score=of.flatten()) for name, of in scores.items()])
    cells = pd.DataFrame({"study": "s", "model_id": list(dict.fromkeys(names))})
    return _holding("variance-adds", cells=cells, importance=importance)


def decided_at_the_bar(claim_id: str, draw: Callable[[Rng, int], Draws], counted: int, n: int) -> int:
    """How often any of the looks decides a claim whose truth is its bar, with seeds added until one does."""
    (claim,) = (claim for claim in read_claims() if claim.claim_id == claim_id)
    seeds = ([Value("", seed, value, None, counted) for seed, value in enumerate(own)] for own in draw(_rng(), n))
    return sum(of_configuration(claim, "", own, own, max(LOOKS))["verdict"] != "undecided" for own in seeds)


def _rng() -> Rng:
    return np.random.default_rng(0)


def _means_at_the_bar(rng: Rng, n: int) -> Draws:
    return rng.normal(0.2, 0.3, (n, max(LOOKS)))


def _shares_at_the_bar(rng: Rng, n: int) -> Draws:
    return shares(rng, 0.5, 0.1, 8, n, max(LOOKS))


def _holding(claim_id: str, **tables: pd.DataFrame) -> int:
    """In how many tries the claim holds, by what its own SELECT gives of these tables."""
    claim = next(claim for claim in read_claims() if claim.claim_id == claim_id)
    with duckdb.connect() as connection:
        create_tables_and_views(connection)
        for name, rows in tables.items():
            connection.register("rows", rows)
            connection.execute(f"CREATE TEMP TABLE {name} AS FROM rows")  # in place of the warehouse's own
        found = connection.sql(claim.select.replace("$study", "'s'")).df()
    tries = found.groupby(found.configuration if "configuration" in found else found.model_id.str.split().str[0])
    intervals = (mean_interval(own.value.to_numpy(), claim.within) for _, own in tries)
    return sum(claim.rule is not None and claim.rule.verdict(i.low, i.high) == "holds" for i in intervals)


def _trials(kind: Kind, what: str, on: str, count: Callable[[int, int], int]) -> list[Trial]:
    """At each number of seeds."""
    return [Trial(kind, what, f"{n} seeds{on}", partial(count, n), 6000, 600) for n in SEEDS]


TRIALS = [
    *_trials("coverage", "share of models that do something", "", partial(cover_shares, 0.0, 1)),
    *_trials(
        "coverage",
        "share of heads, models as clusters",
        ", 8 heads each, independent ones",
        partial(cover_shares, 0.0, 8),
    ),
    *_trials(
        "coverage",
        "share of heads, models as clusters",
        ", 8 heads each, correlated by 0.3 in a model",
        partial(cover_shares, 0.3, 8),
    ),
    *_trials("coverage", "share of heads, trained minus random", ", 8 heads each", partial(cover_differences, 8)),
    *_trials("coverage", "fraction of heads that can go", ", 8 heads each", cover_fractions),
    *(
        trial
        for n in (8, 16)
        for trial in _trials(
            "coverage", "rank correlation, Fisher's z", f", {n} heads each", partial(cover_correlations, n)
        )
    ),
    *_trials(
        "false positives",
        "a claim holds: share of heads over random weights",
        ", 8 heads each, shares alike",
        partial(hold_shares, 8),
    ),
    *_trials("false positives", "a claim holds: mean over random weights", ", means alike", hold_means),
    *_trials(
        "false positives",
        "a claim holds: the lowest loss is at neither end",
        ", 1 to 32 heads, of which one alone is worse",
        hold_between_the_ends,
    ),
    *(
        trial
        for of_norm in (-0.5, 0.0, 0.5)
        for trial in _trials(
            "false positives",
            "a claim holds: variance tells more than the norm",
            f", 16 heads each, the norm correlated by {of_norm:g} with the effect, variance noise",
            partial(hold_beside_norms, of_norm),
        )
    ),
    *(
        Trial(
            "false positives",
            "a claim decided at any look, where its bar is the truth",
            f"looks at {', '.join(map(str, LOOKS))} seeds, {of}",
            partial(decided_at_the_bar, claim_id, draw, counted),
            6000,
            600,
        )
        for of, claim_id, draw, counted in (
            ("means", "composition-matters", _means_at_the_bar, 1),
            ("shares of 8 heads, correlated by 0.1", "one-layer-copies", _shares_at_the_bar, 8),
        )
    ),
    *_trials(
        "false positives",
        "a claim holds: rank correlation above 0",
        ", 16 heads each, scores at random",
        partial(hold_correlations, 16),
    ),
]
