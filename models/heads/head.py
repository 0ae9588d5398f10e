"""What heads are called, which of them a model has, and masks that leave some of them out."""

from collections.abc import Collection
from typing import NamedTuple

from models.transformer import HeadMask, Transformer


class Head(NamedTuple):
    """A head by its layer and its place in it; written L0H3."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}"


HeadSet = frozenset[Head]


def heads_of(model: Transformer) -> list[Head]:
    """Every head of a model, by layer and then by head."""
    return [Head(layer, head) for layer, n in enumerate(model.architecture.heads_per_layer) for head in range(n)]


def mask_without(model: Transformer, pruned: Collection[Head]) -> HeadMask:
    """The mask that is 0 for pruned heads and 1 for all others."""
    masks = [model.W_E.new_ones(n) for n in model.architecture.heads_per_layer]
    for layer, head in pruned:
        masks[layer][head] = 0
    return masks
