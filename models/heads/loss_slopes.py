"""Slopes of the loss: its first-order change if a head's output faded.

The slope z . dL/dz of a head at a position, where L is a sequence's mean loss in nats per token, is the derivative of L
with respect to a factor on z there. Dynamic gates have their straight-through gradient.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.losses import token_losses
from headstream.models.transformer import Fill, HeadMask, Transformer


@torch.inference_mode(False)
@torch.enable_grad()
def loss_slopes(
    model: Transformer, text: Int[Tensor, "batch pos"], fill: Fill, head_mask: HeadMask | None = None
) -> list[Float[Tensor, "batch _ q_pos"]]:
    """Slopes z . dL/dz by head and position, a tensor per layer, in float64 on the CPU; 0 for pruned heads.

    Cost: a forward and a backward pass of the text.
    """
    found = []
    for batch in batches(model, text):
        x, mixed = model.embed(batch[:, :-1]), []
        for i, layer in enumerate(model.layers):
            mixed.append(layer.attention.mix_fused(layer.read(x)).requires_grad_())
            x = layer.write(x, mixed[-1], head_mask[i] if head_mask else None, fill[i])[-1]
        losses = token_losses(model.unembed(model.final_norm(x)), batch[:, 1:]).mean(1)
        gradients = torch.autograd.grad(losses.sum(), mixed) if mixed else ()
        slopes = [(z * gradient).sum(-1) for z, gradient in zip(mixed, gradients, strict=True)]
        found.append([layer_slopes.detach().double().cpu() for layer_slopes in slopes])
    return [torch.cat(parts) for parts in zip(*found, strict=True)]
