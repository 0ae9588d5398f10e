"""Hierarchical clustering of heads by the distances between them."""

import torch
from jaxtyping import Float, Int
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from torch import Tensor


def cluster_heads(distances: Float[Tensor, "head head"], cut: float) -> dict[str, Int[Tensor, "head"]]:
    """Cluster heads: the two nearest clusters, by mean distance between heads, merge while that is at most `cut`.

    `cluster` counts from 0 in the order of the leaves; `leaf` is a head's place in an order that puts similar heads
    next to each other.
    """
    n_heads = len(distances)
    if n_heads < 2:
        alone = torch.zeros(n_heads, dtype=torch.int64)
        return {"cluster": alone, "leaf": alone}
    condensed = squareform(distances.numpy(force=True))
    linkage = hierarchy.optimal_leaf_ordering(hierarchy.linkage(condensed, method="average"), condensed)
    leaf = torch.from_numpy(hierarchy.leaves_list(linkage)).long().argsort()
    label = torch.from_numpy(hierarchy.fcluster(linkage, cut, criterion="distance")).long()
    first_leaf = torch.full((n_heads + 1,), n_heads).scatter_reduce(0, label, leaf, "amin")
    return {"cluster": first_leaf[label].unique(return_inverse=True)[1], "leaf": leaf}
