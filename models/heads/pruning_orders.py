"""In which order heads are pruned: the least important first."""

from collections.abc import Callable, Collection, Sequence

import torch

from models.heads.evidence import HeadScores
from models.heads.head import Head, HeadSet


def by_importance(scores: HeadScores, heads: Collection[Head]) -> list[Head]:
    """Heads in the order of their scores, the lowest first, equal ones by layer and head.

    Heads without a score (NaN) come last: nothing says that they can be removed.
    """

    def key(head: Head) -> tuple[bool, float, Head]:
        score = scores[head.layer][head.head].item()
        return (True, 0.0, head) if score != score else (False, score, head)

    return sorted(heads, key=key)


def iterative_order(
    scores: HeadScores, scores_without: Callable[[HeadSet], HeadScores], heads: Collection[Head]
) -> list[Head]:
    """The order in which heads are pruned if those that are left are scored anew after each."""
    order = by_importance(scores, heads)[:1]
    while len(order) < len(heads):
        left = set(heads) - set(order)
        order.append(by_importance(scores_without(frozenset(order)), left)[0])
    return order


def random_orders(heads: Sequence[Head], n: int, generator: torch.Generator) -> list[list[Head]]:
    """Random pruning orders, the control."""
    return [[heads[i] for i in torch.randperm(len(heads), generator=generator).tolist()] for _ in range(n)]


def prefixes(order: Sequence[Head]) -> list[HeadSet]:
    """The heads pruned after each step of an order, from none to all."""
    return [frozenset(order[:n]) for n in range(len(order) + 1)]
