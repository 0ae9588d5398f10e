"""Scores from one backward pass a batch: what the loss would do, to first order, if a head's output faded.

All come from z . dL/dz of each head at each position, where L is a sequence's mean loss in nats per token: the
derivative of L in a factor on z there. Sources add up losses and divide by the number of tokens, which is the same.
They differ in what is summed before the sign is dropped. Dynamic gates have their straight-through gradient.
Source: Michel et al. 2019, section 4.1 (`michel_paper`) and its BERT code, examples/pruning.py (`michel_code`);
Hugging Face transformers, run_bertology.py (`hf_bertology`); Molchanov et al. 2017, Taylor expansion.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from models.batching import batches
from models.heads.evidence import Evidence, HeadScores
from models.losses import token_losses

BERTOLOGY_BATCH = 8  # sequences whose gradients are summed before the sign is dropped


def michel_paper(evidence: Evidence) -> HeadScores:
    """Importance as Michel et al. define it: mean over sequences of |sum over positions of slopes|, nats per token."""
    return [slopes.sum(2).abs().mean(0) for slopes in loss_slopes(evidence)]


def michel_code(evidence: Evidence) -> HeadScores:
    """Importance as their code has it: mean over sequences of the sum over positions of |slope|, nats per token."""
    return [slopes.abs().sum(2).mean(0) for slopes in loss_slopes(evidence)]


def hf_bertology(evidence: Evidence) -> HeadScores:
    """Importance as run_bertology has it: |sum of slopes over a batch of sequences|, nats per token.

    Each batch starts from gradients of zero. The script forgets to clear them, so its later batches count its earlier.
    """
    by_batch = [slopes.sum(2).split(BERTOLOGY_BATCH) for slopes in loss_slopes(evidence)]
    n = len(evidence.text)
    return [torch.stack([batch.sum(0).abs() for batch in layer]).sum(0) / n for layer in by_batch]


def taylor_signed(evidence: Evidence) -> HeadScores:
    """Rise of the loss that slopes promise if z became zero, nats per token: negative = better without the head."""
    return [-slopes.sum(2).mean(0) for slopes in loss_slopes(evidence)]


@torch.inference_mode(False)
@torch.enable_grad()
def loss_slopes(evidence: Evidence) -> list[Float[Tensor, "batch _ pos"]]:
    """Slope of the loss in a factor on z, z . dL/dz, by head and position: a tensor a layer, 0 for pruned heads."""
    model, mask, fill = evidence.model, evidence.head_mask, evidence.fill
    found = []
    for batch in batches(model, evidence.text):
        x, mixed = model.embed(batch[:, :-1]), []
        for i, layer in enumerate(model.layers):
            mixed.append(layer.attention.mix_fused(layer.read(x)).requires_grad_())
            x = layer.write(x, mixed[-1], mask[i] if mask else None, fill[i])[-1]
        losses = token_losses(model.unembed(model.final_norm(x)), batch[:, 1:]).mean(1)
        gradients = torch.autograd.grad(losses.sum(), mixed) if mixed else ()
        slopes = [(z * gradient).sum(-1) for z, gradient in zip(mixed, gradients, strict=True)]
        found.append([layer_slopes.detach().double().cpu() for layer_slopes in slopes])
    return [torch.cat(parts) for parts in zip(*found, strict=True)]
