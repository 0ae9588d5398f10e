"""Sequences a few at a time, so that memory doesn't grow with their number."""

from collections.abc import Iterator

from jaxtyping import Int
from torch import Tensor

from models.transformer import Transformer

BATCH_NUMBERS = 2**20  # attention weights or logits held at once; a batch has as many sequences as fit


def batches(model: Transformer, sequences: Int[Tensor, "batch pos"]) -> Iterator[Int[Tensor, "size pos"]]:
    """Sequences on the model's device, as many at a time as `BATCH_NUMBERS` allows."""
    size = sequences_at_once(model, sequences.shape[1])
    return (batch.to(model.W_E.device) for batch in sequences.split(size))


def sequences_at_once(model: Transformer, n_tokens: int) -> int:
    """How many sequences of so many tokens `BATCH_NUMBERS` allows, with the patterns of all layers held."""
    weights, logits = n_tokens * n_tokens * sum(model.architecture.heads_per_layer), n_tokens * model.d_vocab
    return max(1, BATCH_NUMBERS // max(weights, logits))
