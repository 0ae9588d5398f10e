"""Sequences a few at a time, so that memory doesn't grow with their number."""

from collections.abc import Iterator

from jaxtyping import Int
from torch import Tensor

from models.transformer import Transformer

BATCH_NUMBERS = 2**20  # attention weights or logits held at once; a batch has as many sequences as fit


def batches(model: Transformer, sequences: Int[Tensor, "batch pos"]) -> Iterator[Int[Tensor, "size pos"]]:
    """Sequences on the model's device, as many at a time as `BATCH_NUMBERS` allows."""
    n = sequences.shape[1]
    weights, logits = n * n * sum(model.architecture.heads_per_layer), n * model.d_vocab
    size = max(1, BATCH_NUMBERS // max(weights, logits))
    return (batch.to(model.W_E.device) for batch in sequences.split(size))
