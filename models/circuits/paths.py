"""Path expansion: what W_U reads, as a sum over the paths by which it came from the embedding, head after head.

A path runs from the embedding through some heads, at most one a layer, to W_U; its order is the number of heads.
What a head adds whatever it attends to (biases of values and of norms) starts a path of its own, of order 0. Patterns
and norm scales are the run's. A feed-forward layer can't be expanded: paths from its output are apart, as one part.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.frozen import FrozenRun
from headstream.models.nodes import Head

HeadPath = tuple[Head, ...]


@dataclass(frozen=True)
class OrderedPaths:
    """The input of W_U, split by the order of the paths it came by; the parts sum to all of it."""

    orders: Float[Tensor, "order batch pos d_model"]  # 0 to the number of layers
    feed_forward: Float[Tensor, "batch pos d_model"] | None  # all paths that start at a feed-forward layer's output


def paths_by_order(run: FrozenRun) -> OrderedPaths:
    """Sum the paths of each order, in one pass over the layers."""
    orders = [run.trace.embedding]
    feed_forward: Tensor | None = None
    for layer in run.layers:
        through = [layer.all_heads(part) for part in orders]
        kept = [layer.carry(part) for part in orders]
        kept[0] = kept[0] + layer.bias() + layer.value_bias()
        orders = [kept[0], *(low + part for low, part in zip(through[:-1], kept[1:], strict=True)), through[-1]]
        if (output := layer.feed_forward()) is not None:
            if feed_forward is not None:
                output = output + layer.carry(feed_forward) + layer.all_heads(feed_forward)
            feed_forward = output
    orders = [run.final(part) for part in orders]
    if run.final.bias is not None:
        orders[0] = orders[0] + run.final.bias
    return OrderedPaths(torch.stack(orders), None if feed_forward is None else run.final(feed_forward))


def head_paths(run: FrozenRun) -> Iterator[tuple[HeadPath, Float[Tensor, "batch pos d_model"]]]:
    """Each path through one head, with what W_U reads of it; together they are order 1."""
    for i, outputs in enumerate(_first_heads(run)):
        for head, part in enumerate(run.carry(outputs, i)):
            yield (Head(i, head),), part


def virtual_head_paths(
    run: FrozenRun, wanted: Container[HeadPath]
) -> Iterator[tuple[HeadPath, Float[Tensor, "batch pos d_model"]]]:
    """Each wanted path through two heads, with what W_U reads of it; all such paths together are order 2."""
    for i, outputs in enumerate(_first_heads(run)):
        for j in range(i + 1, len(run.layers)):
            for first, output in enumerate(outputs):
                paths = [(Head(i, first), Head(j, second)) for second in range(len(run.layers[j].attention.W_O))]
                if any(path in wanted for path in paths):
                    parts = run.carry(run.layers[j].heads(output), j)
                    yield from ((path, part) for path, part in zip(paths, parts, strict=True) if path in wanted)
            outputs = run.layers[j].carry(outputs)


def virtual_heads_of(heads_per_layer: tuple[int, ...]) -> list[HeadPath]:
    """Every path through two heads of different layers."""
    heads = [[Head(i, head) for head in range(n)] for i, n in enumerate(heads_per_layer)]
    return [(a, b) for i, layer in enumerate(heads) for a in layer for later in heads[i + 1 :] for b in later]


def _first_heads(run: FrozenRun) -> Iterator[Float[Tensor, "head batch pos d_model"]]:
    """The output of each layer's heads for the paths through no head."""
    direct = run.trace.embedding
    for layer in run.layers:
        yield layer.heads(direct)
        direct = layer.carry(direct) + layer.bias() + layer.value_bias()
