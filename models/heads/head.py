"""The heads that a model has, those that training removed, and masks that leave some of them out."""

from collections.abc import Collection

from jaxtyping import Bool
from torch import Tensor

from headstream.models.gates import StaticGates
from headstream.models.hard_concrete import gates_without_noise
from headstream.models.nodes import Head
from headstream.models.transformer import HeadMask, Layer, Transformer

HeadSet = frozenset[Head]


def heads_of(model: Transformer) -> list[Head]:
    """Every head of a model, by layer and then by head, without those that training removed."""
    removed = removed_heads(model)
    every = [Head(layer, head) for layer, n in enumerate(model.architecture.heads_per_layer) for head in range(n)]
    return [head for head in every if head not in removed]


def removed_heads(model: Transformer) -> HeadSet:
    """Heads that never write anything, because of pruning in training or closed static gates."""
    removed: set[Head] = set()
    for i, layer in enumerate(model.layers):
        silent = (~_writes(layer)).nonzero().flatten().tolist()
        removed.update(Head(i, head) for head in silent)
    return frozenset(removed)


def _writes(layer: Layer) -> Bool[Tensor, "head"]:
    """True for heads whose W_O, and static gate if there is one, aren't exactly 0."""
    attention = layer.attention
    writes: Tensor = (attention.W_O != 0).flatten(1).any(1)
    if isinstance(attention.gates, StaticGates):
        writes = writes & (gates_without_noise(attention.gates.log_alpha) > 0)
    return writes


def mask_without(model: Transformer, pruned: Collection[Head]) -> HeadMask:
    """The mask that is 0 for pruned heads and 1 for all others."""
    masks = [model.W_E.new_ones(n) for n in model.architecture.heads_per_layer]
    for layer, head in pruned:
        masks[layer][head] = 0
    return masks
