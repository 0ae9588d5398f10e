"""Replacements for an ablated head's z, estimated on text other than that of the measurements."""

import torch
from jaxtyping import Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.transformer import Fill, Transformer


def mean_z(model: Transformer, sequences: Int[Tensor, "batch pos"], *, by_position: bool = False) -> Fill:
    """Each head's mean z over sequences and positions, or over sequences at each position.

    The last token of a sequence is only predicted, not read. [head, 1 or pos, d_value] per layer.
    """
    sums: list[Tensor] = []
    for batch in batches(model, sequences):
        z = [layer.z.double().sum(0) for layer in model.trace(batch[:, :-1]).layers]
        sums = [total + part for total, part in zip(sums, z, strict=True)] if sums else z
    means = [total / len(sequences) for total in sums]
    if not by_position:
        means = [mean.mean(1, keepdim=True) for mean in means]
    return [mean.to(model.W_E.dtype) for mean in means]


def derangement(n: int, generator: torch.Generator) -> Int[Tensor, "n"]:
    """A random permutation of two or more numbers without fixed points: a cycle through all of them."""
    order = torch.randperm(n, generator=generator)
    partner = torch.empty(n, dtype=torch.long)
    partner[order] = order.roll(1)
    return partner
