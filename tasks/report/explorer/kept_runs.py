"""What a model did on a passage, kept for a page that can't run the model itself."""

import gzip
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.transformer import HeadMask, LayerTrace, Transformer

N_PREDICTIONS = 6  # kept for each position


def kept_run(
    model: Transformer, tokens: Sequence[int], head_mask: HeadMask | None = None
) -> tuple[dict[str, Any], bytes]:
    """Predictions and losses as JSON holds them; and, gzipped, every head's attention and what it had to weigh.

    With a mask, heads write nothing where it is 0.
    Attention is a byte a weight in 255ths, keys up to the query's own, queries after each other, heads after each
    other; then come, as 16-bit floats, the lengths of what each head would write of each key.
    """
    ids = torch.tensor([list(tokens)])
    trace = model.trace(ids, head_mask)
    log_probabilities = trace.logits[0].log_softmax(-1)
    losses = -log_probabilities[:-1].gather(1, ids[0, 1:, None])[:, 0]
    best = log_probabilities.topk(min(N_PREDICTIONS, model.d_vocab))
    lower = torch.tril(torch.ones(len(tokens), len(tokens), dtype=torch.bool))
    patterns = [(layer.pattern[0][:, lower] * 255).round().to(torch.uint8).numpy() for layer in trace.layers]
    lengths = [
        written_lengths(model, i, layer).to(torch.float16).numpy().astype("<f2") for i, layer in enumerate(trace.layers)
    ]
    packed = b"".join(part.tobytes() for part in (*patterns, *lengths))
    facts = {
        "losses": np.round(losses.numpy().astype(float), 4).tolist(),
        "best": best.indices.tolist(),
        "bestProbabilities": np.round(best.values.exp().numpy().astype(float), 4).tolist(),
    }
    return facts, gzip.compress(packed, compresslevel=6, mtime=0)


def written_lengths(model: Transformer, layer: int, trace: LayerTrace) -> Float[Tensor, "head pos"]:
    """How long what a head would write is if it attended to one position alone: the norm of v W_O.

    Source: Kobayashi et al. 2020, Attention is Not Only a Weight.
    """
    block = model.layers[layer]
    values = block.attention.queries_keys_values(block.read(trace.residual_in))[2]
    return (values @ trace.W_O).norm(dim=-1)[0]
