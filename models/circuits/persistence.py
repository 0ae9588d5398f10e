"""Persistence: the share of a head's output that is still there at the end."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.circuits.head_weights import why_no_circuits
from headstream.models.frozen import FrozenRun, freeze_run
from headstream.models.transformer import Transformer


@torch.inference_mode()
def persistence(model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int) -> list[Float[Tensor, "head"]]:
    """Share of each head's output that is left in the final stream, BOS positions left out: a tensor a layer.

    1 plus the projection of all later writes on the output, over its own square: 1 = left alone, 0 = erased, below 0 =
    overwritten, above 1 = added to. NaN where a head writes nothing.

    Raises:
        ValueError: the stream is normalised between layers, so that nothing stays as it was written.
    """
    if reason := why_no_circuits(model.architecture):
        raise ValueError(reason)
    sums = [_later_and_own(freeze_run(model, batch), batch != bos) for batch in batches(model, sequences)]
    return [1 + later / own for later, own in (torch.stack(layer).sum(0) for layer in zip(*sums, strict=True))]


def _later_and_own(run: FrozenRun, counted: Tensor) -> list[Float[Tensor, "2 head"]]:
    """Of each layer, sums over positions of later writes times the head's output, and of its square."""
    products = []
    for layer, frozen in zip(run.model.layers, run.layers, strict=True):
        traced = frozen.trace
        later = run.trace.layers[-1].residual_out - layer.residual_mid(traced.residual_in, traced.attention_out)
        own = frozen.written().transpose(0, 1)
        sums = [(own * other).sum(3) * counted[:, None] for other in (later[:, None], own)]
        products.append(torch.stack([by_position.double().sum((0, 2)) for by_position in sums]))
    return products
