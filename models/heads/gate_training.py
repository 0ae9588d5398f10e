"""Gates on heads that learn to close: one hard-concrete gate a head, on a trained model whose weights stay.

A closed head writes nothing. Source: Voita et al. 2019, section 5, who let the weights train on; Louizos et al. 2018.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.hard_concrete import OPEN_LOG_ALPHA, open_probability, sampled_gates
from models.losses import token_losses
from models.transformer import Transformer


def train_gates(
    model: Transformer,
    windows: Iterable[Int[Tensor, "batch pos"]],
    penalty_nats: float,
    rate: float,
    generator: torch.Generator,
) -> list[Float[Tensor, "_"]]:
    """log_alpha of each head, a tensor a layer: Adam on the loss plus a penalty for each head that is expected open.

    A step a batch of windows. Every sequence samples gates of its own, which makes gradients less noisy than one sample
    a batch.
    """
    heads_per_layer = list(model.architecture.heads_per_layer)
    log_alpha = model.W_E.new_full((sum(heads_per_layer),), OPEN_LOG_ALPHA, requires_grad=True)
    optimizer = torch.optim.Adam([log_alpha], lr=rate)
    for batch in windows:
        uniform = torch.rand(len(batch), len(log_alpha), generator=generator, dtype=log_alpha.dtype)
        gates = sampled_gates(log_alpha, uniform.to(log_alpha.device)).split(heads_per_layer, dim=1)
        loss = _gated_loss(model, batch.to(log_alpha.device), gates)
        (log_alpha.grad,) = torch.autograd.grad(loss + penalty_nats * open_probability(log_alpha).sum(), log_alpha)
        optimizer.step()
    return list(log_alpha.detach().split(heads_per_layer))


def _gated_loss(
    model: Transformer, sequences: Int[Tensor, "batch pos"], gates: Iterable[Float[Tensor, "batch _"]]
) -> Float[Tensor, ""]:
    x = model.embed(sequences[:, :-1])
    for layer, own in zip(model.layers, gates, strict=True):
        x = layer.write(x, layer.attention.mix_fused(layer.read(x)) * own[:, :, None, None])[-1]
    return token_losses(model.unembed(model.final_norm(x)), sequences[:, 1:]).mean()
