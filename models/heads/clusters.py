"""Which heads belong together: hierarchical clustering by the distances between them."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from torch import Tensor


@dataclass(frozen=True)
class Clusters:
    """Where each head belongs, and where it stands among all."""

    cluster: Int[Tensor, "head"]  # counted from 0, in the order of the leaves
    leaf: Int[Tensor, "head"]  # place in an order that puts similar heads next to each other, counted from 0


def cluster_heads(distances: Float[Tensor, "head head"], cut: float) -> Clusters:
    """Clusters of heads: the two nearest merge, by mean distance between their heads, while that is at most `cut`."""
    n_heads = len(distances)
    if n_heads < 2:
        alone = torch.zeros(n_heads, dtype=torch.int64)
        return Clusters(alone, alone)
    condensed = squareform(distances.numpy(force=True))
    linkage = hierarchy.optimal_leaf_ordering(hierarchy.linkage(condensed, method="average"), condensed)
    leaf = torch.from_numpy(hierarchy.leaves_list(linkage)).long().argsort()
    label = torch.from_numpy(hierarchy.fcluster(linkage, cut, criterion="distance")).long()
    first_leaf = torch.full((n_heads + 1,), n_heads).scatter_reduce(0, label, leaf, "amin")
    return Clusters(first_leaf[label].unique(return_inverse=True)[1], leaf)
