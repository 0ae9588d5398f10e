"""Batches of a few sequences at a time, so that memory doesn't grow with their number."""

from collections.abc import Iterator

from jaxtyping import Int
from torch import Tensor

from headstream.models.transformer import Transformer

BATCH_NUMBERS = 2**20  # attention weights of all layers, or logits, held at once; a batch has as many sequences as fit
PASS_NUMBERS = 2**21  # the same in passes that hold one layer's weights at a time
GPU_FACTOR = 2**6


def at_once(numbers: int, like: Tensor) -> int:
    """Amount of numbers to process at once on a tensor's device: `numbers` on a CPU, more to keep a GPU busy."""
    return numbers * GPU_FACTOR if like.is_cuda else numbers


def batches(
    model: Transformer, sequences: Int[Tensor, "batch pos"], *, traced: bool = True
) -> Iterator[Int[Tensor, "size pos"]]:
    """Sequences on the model's device, as many at a time as fit, with a trace of each held in memory or not."""
    size = sequences_at_once(model, sequences.shape[1], traced=traced)
    return (batch.to(model.W_E.device) for batch in sequences.split(size))


def sequences_at_once(model: Transformer, n_tokens: int, *, traced: bool = True) -> int:
    """Number of sequences of `n_tokens` tokens that fit in a batch, at least 1."""
    heads = model.architecture.heads_per_layer
    weights = n_tokens * n_tokens * (sum(heads) if traced else max(heads, default=0))
    numbers = at_once(BATCH_NUMBERS if traced else PASS_NUMBERS, model.W_E)
    return max(1, numbers // max(weights, n_tokens * model.d_vocab))
