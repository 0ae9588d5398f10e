"""Training of gates that learn to close: one hard-concrete gate per head, on a trained model with fixed weights.

A closed head writes nothing. Source: Voita et al. 2019, section 5, who train the weights, too; Louizos et al. 2018.
"""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.batching import sequences_at_once
from headstream.models.hard_concrete import OPEN_LOG_ALPHA, open_probability, sampled_gates
from headstream.models.losses import token_losses
from headstream.models.transformer import Transformer

WITH_GRADIENTS = 8  # times as many sequences as in other passes are held at once, with everything gradients need


def train_gates(
    model: Transformer,
    windows: Iterable[Int[Tensor, "batch pos"]],
    penalties_nats: Sequence[float],
    rate: float,
    generator: torch.Generator,
) -> list[list[Float[Tensor, "_"]]]:
    """log_alpha of each head, a tensor per layer, for each penalty on the expected number of open heads.

    Adam on the loss plus the penalty, one step per batch of windows. Every sequence samples its own gates, which makes
    gradients less noisy than one sample per batch. All penalties see the same windows and noise, so that they learn
    side by side, and share the first layer's z, which no gate changes.

    Cost: a forward and a backward pass of each window for each penalty.
    """
    heads_per_layer = list(model.architecture.heads_per_layer)
    penalties = model.W_E.new_tensor(penalties_nats)[:, None]
    log_alpha = model.W_E.new_full((len(penalties), sum(heads_per_layer)), OPEN_LOG_ALPHA, requires_grad=True)
    optimizer = torch.optim.Adam([log_alpha], lr=rate)
    for batch in windows:
        uniform = torch.rand(len(batch), len(log_alpha[0]), generator=generator, dtype=log_alpha.dtype)
        uniform, batch = uniform.to(log_alpha.device), batch.to(log_alpha.device)
        read, first = model.embed(batch[:, :-1]), model.layers[0]
        shared = read, first.attention.mix_fused(first.read(read)), batch[:, 1:]
        n_at_once = max(1, WITH_GRADIENTS * sequences_at_once(model, batch.shape[1]) // len(batch))
        gradients = []
        for own, penalty in zip(log_alpha.split(n_at_once), penalties.split(n_at_once), strict=True):
            gates = (
                sampled_gates(own[:, None], uniform.expand(len(own), -1, -1))
                .flatten(0, 1)
                .split(heads_per_layer, dim=1)
            )
            x, z, targets = (part.expand(len(own), *part.shape).flatten(0, 1) for part in shared)
            loss = _gated_loss(model, x, z, targets, gates) * len(own) + (penalty * open_probability(own)).sum()
            gradients.append(torch.autograd.grad(loss, own)[0])
        log_alpha.grad = torch.cat(gradients)
        optimizer.step()
    return [list(own.split(heads_per_layer)) for own in log_alpha.detach()]


def _gated_loss(
    model: Transformer,
    x: Float[Tensor, "batch pos d_model"],
    z: Float[Tensor, "batch head pos d_value"],
    targets: Int[Tensor, "batch pos"],
    gates: Iterable[Float[Tensor, "batch _"]],
) -> Float[Tensor, ""]:
    """Mean loss, given the stream that the first layer reads and the z of its heads."""
    for i, (layer, own) in enumerate(zip(model.layers, gates, strict=True)):
        z = layer.attention.mix_fused(layer.read(x)) if i else z
        x = layer.write(x, z * own[:, :, None, None])[-1]
    return token_losses(model.unembed(model.final_norm(x)), targets).mean()
