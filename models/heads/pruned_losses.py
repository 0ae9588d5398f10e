"""Losses of a model without each of many sets of heads, sharing the parts of the passes that are equal."""

from collections import defaultdict
from collections.abc import Collection, Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.heads.head import HeadSet, mask_without
from headstream.models.heads.removal import layer_without_heads, why_no_removal
from headstream.models.losses import token_losses
from headstream.models.transformer import Fill, HeadMask, Transformer


@torch.inference_mode()
def losses_without(
    model: Transformer, sequences: Int[Tensor, "batch pos"], fill: Fill | None, pruned: Collection[HeadSet]
) -> dict[HeadSet, Float[Tensor, "batch"]]:
    """Mean loss of each sequence with each set of heads pruned, in float64 on the CPU.

    Sets that prune the same heads of the first layers share the pass up to there, and z of the next layer. From the
    layer on where a set differs from all others, its pruned heads aren't computed.

    Cost: a pass per set, less what is shared and skipped.
    """
    masks = {heads: mask_without(model, heads) for heads in pruned}
    # Filled in place: thousands of small tensors that are kept, between large ones that are freed, would prevent the
    # reuse of memory, which would grow to gigabytes.
    losses = {heads: torch.empty(len(sequences), dtype=torch.float64) for heads in masks}
    start = 0
    for batch in batches(model, sequences, traced=False):
        rows = slice(start, start + len(batch))
        for heads, logits in _branches(model, model.embed(batch[:, :-1]), 0, masks, fill):
            losses[heads][rows] = token_losses(logits, batch[:, 1:]).double().mean(1)
        start = rows.stop
    return losses


def _branches(
    model: Transformer,
    x: Float[Tensor, "batch pos d_model"],
    first_layer: int,
    masks: dict[HeadSet, HeadMask],
    fill: Fill | None,
) -> Iterator[tuple[HeadSet, Float[Tensor, "batch pos d_vocab"]]]:
    """Logits for each of some sets, which prune the same heads of the layers before `first_layer`."""
    if first_layer == len(model.layers):
        (heads,) = masks
        yield heads, model.unembed(model.final_norm(x))
        return
    layer, own_fill = model.layers[first_layer], fill[first_layer] if fill else None
    alike: dict[HeadSet, dict[HeadSet, HeadMask]] = defaultdict(dict)
    for heads, mask in masks.items():
        alike[frozenset(head for head in heads if head.layer == first_layer)][heads] = mask
    if len(alike) == 1:
        own_mask = next(iter(masks.values()))[first_layer]
        a = model.architecture.of_layer(first_layer)
        if own_mask.all() or why_no_removal(a):
            x = layer(x, own_mask, own_fill)
        else:
            x = layer_without_heads(a, layer, own_mask, own_fill)(x)
        yield from _branches(model, x, first_layer + 1, masks, fill)
        return
    z = layer.attention.mix_fused(layer.read(x))
    for group in alike.values():
        own_mask = next(iter(group.values()))[first_layer]
        yield from _branches(model, layer.write(x, z, own_mask, own_fill)[-1], first_layer + 1, group, fill)
