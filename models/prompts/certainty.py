"""How sure effects on pairs are: intervals over pairs of templates, edges that are surely in a circuit, agreement."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from scipy.special import stdtr
from scipy.stats import pearsonr, spearmanr
from torch import Tensor

from headstream.models.clustered_errors import clustered_mean
from headstream.models.multiple_tests import significant

LEAST_SHARE = 0.01  # of the whole difference, that an edge must carry to be surely in
SURE_LEVEL = 0.05  # at which an edge is surely in, over all that are tested
MIN_TEMPLATES = 4  # below, pairs count as independent of one another


def clusters_of(templates: Int[Tensor, "pair"]) -> Int[Tensor, "pair"]:
    """What counts as independent: templates, if there are enough of them, else pairs."""
    return templates if len(templates.unique()) >= MIN_TEMPLATES else torch.arange(len(templates))


def halves(clusters: Int[Tensor, "pair"]) -> tuple[Int[Tensor, "_"], Int[Tensor, "_"]]:
    """Places of the pairs on which a circuit is found, and of those on which it is judged: every second cluster."""
    _, place = clusters.unique(return_inverse=True)
    return (place % 2 == 0).nonzero()[:, 0], (place % 2 == 1).nonzero()[:, 0]


def surely_in(
    effects: Float[Tensor, "edge pair"], whole: Float[Tensor, "pair"], clusters: Int[Tensor, "pair"]
) -> Bool[Tensor, "edge"]:
    """Edges whose exact effect is above 1 % of the whole difference, tested together (one-sided, Holm at 5 %)."""
    beyond = clustered_mean(effects - LEAST_SHARE * whole, clusters)
    t = beyond.mean / beyond.sem
    chance = torch.from_numpy(stdtr(beyond.degrees_of_freedom, -t.numpy()))
    return significant(chance, SURE_LEVEL)


class Agreement(NamedTuple):
    """How well scores of edges tell their exact effects: over edges that were drawn at random."""

    pearson: float
    spearman: float
    right_signs: float  # share of edges
    slope: float  # of scores over exact effects


def agreement(scores: Float[Tensor, "edge"], exact: Float[Tensor, "edge"]) -> Agreement:
    """Compare scores with exact effects; NaN for fewer than three edges, or if either doesn't vary."""
    if len(scores) < 3 or not scores.std() or not exact.std():
        return Agreement(*[float("nan")] * 4)
    a, b = scores.double().numpy(), exact.double().numpy()
    signs = float(((a > 0) == (b > 0)).mean())
    return Agreement(float(pearsonr(a, b)[0]), float(spearmanr(a, b)[0]), signs, float((a * b).sum() / (b * b).sum()))
