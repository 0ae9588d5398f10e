"""Orders in which heads are pruned, the least important first."""

from collections.abc import Callable, Collection, Sequence

import torch

from headstream.models.heads.head import HeadSet
from headstream.models.heads.scoring_inputs import HeadScores
from headstream.models.nodes import Head


def by_importance(scores: HeadScores, heads: Collection[Head]) -> list[Head]:
    """Heads in the order of their scores, the lowest first, ties by layer and head.

    Heads without a score (NaN) come last: nothing suggests that they can be removed.
    """

    def key(head: Head) -> tuple[bool, float, Head]:
        score = scores[head.layer][head.head].item()
        return (True, 0.0, head) if score != score else (False, score, head)

    return sorted(heads, key=key)


def pruning_sizes(n_heads: int, most: int) -> list[int]:
    """Numbers of pruned heads at which a model is examined, up to all of them.

    Every number, if there are at most `most`; otherwise numbers that grow as squares, denser at the start, and half of
    the heads.

    >>> pruning_sizes(4, most=8), pruning_sizes(48, most=8)
    ([1, 2, 3, 4], [1, 3, 7, 12, 19, 24, 27, 37, 48])
    """
    if n_heads <= most:
        return list(range(1, n_heads + 1))
    squares = {round(n_heads * (i / most) ** 2) for i in range(1, most + 1)}
    return sorted({n_heads // 2, *squares} - {0})


def iterative_order(
    scores: HeadScores, scores_without: Callable[[HeadSet], HeadScores], heads: Collection[Head], sizes: Sequence[int]
) -> list[Head]:
    """The pruning order if the remaining heads are rescored whenever one of `sizes` is reached."""
    order: list[Head] = []
    for size in sizes:
        if order:
            scores = scores_without(frozenset(order))
        order += by_importance(scores, set(heads) - set(order))[: size - len(order)]
    return order


def random_orders(heads: Sequence[Head], n: int, generator: torch.Generator) -> list[list[Head]]:
    """Random pruning orders, as a control."""
    return [[heads[i] for i in torch.randperm(len(heads), generator=generator).tolist()] for _ in range(n)]


def prefixes(order: Sequence[Head], sizes: Sequence[int]) -> list[HeadSet]:
    """The sets of pruned heads along an order: none, and then at each of `sizes`."""
    return [frozenset(order[:n]) for n in (0, *sizes)]
