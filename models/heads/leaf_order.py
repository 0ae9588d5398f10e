"""In which order the leaves of a dendrogram stand, so that neighbours are near: the best that its branches allow.

scipy's `optimal_leaf_ordering` is not it: it often misses the optimum (scipy issue 11227). Source: Bar-Joseph et al.
2001, where a subtree needs only the shortest order for each choice of its two ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class _Tree:
    leaves: Int[Tensor, "leaf"]
    lengths: Float[Tensor, "leaf leaf"]  # sum over neighbours of the best order with these ends, inf if there is none
    branches: tuple["_Tree", "_Tree"] | None = None


def optimal_leaf_order(merges: Sequence[tuple[int, int]], distances: Float[Tensor, "leaf leaf"]) -> list[int]:
    """Order of smallest sum of distances between neighbours.

    Each merge joins two trees: leaves come first in their numbering, then what the merges made, as in scipy's linkage.
    """
    trees = [_Tree(torch.tensor([leaf]), distances.new_zeros(1, 1)) for leaf in range(len(distances))]
    for left, right in merges:
        trees.append(_join(trees[left], trees[right], distances))
    first, last = divmod(int(trees[-1].lengths.argmin()), len(distances))
    return _order(trees[-1], first, last, distances)


def _join(left: _Tree, right: _Tree, distances: Tensor) -> _Tree:
    n, leaves = len(left.leaves), torch.cat([left.leaves, right.leaves])
    lengths = distances.new_full((len(leaves), len(leaves)), torch.inf)
    lengths[:n, n:] = _min_plus(_min_plus(left.lengths, distances[left.leaves][:, right.leaves]), right.lengths)
    lengths[n:, :n] = lengths[:n, n:].T
    return _Tree(leaves, lengths, (left, right))


def _min_plus(a: Float[Tensor, "first middle"], b: Float[Tensor, "middle last"]) -> Float[Tensor, "first last"]:
    return (a[:, :, None] + b).amin(1)


def _order(tree: _Tree, first: int, last: int, distances: Tensor) -> list[int]:
    """The best order with these ends, places among the tree's leaves."""
    if tree.branches is None:
        return tree.leaves.tolist()
    left, right = tree.branches
    n = len(left.leaves)
    if first >= n:
        return _order(tree, last, first, distances)[::-1]
    gap = distances[left.leaves][:, right.leaves]
    total = left.lengths[first][:, None] + gap + right.lengths[:, last - n]
    before, after = divmod(int(total.argmin()), len(right.leaves))
    return _order(left, first, before, distances) + _order(right, after, last - n, distances)
