"""Losses of many final streams of one batch, without ever holding all their logits."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.batching import at_once
from headstream.models.transformer import Transformer

LOGITS, MIN_ROWS = 2**18, 2**8  # logits at once, to fit in a CPU's cache; but products of few rows are slow


def stream_losses(
    model: Transformer, streams: Float[Tensor, "*runs batch pos d_model"], targets: Int[Tensor, "batch pos"]
) -> Float[Tensor, "*runs batch pos"]:
    """Cross-entropy in nats of each prediction of each run, given the stream that W_U reads in it."""
    rows = streams.flatten(0, -2)
    normaliser = log_normalisers(model, len(rows), lambda part: model.unembed(rows[part]))
    logits = torch.einsum("...bpd,bpd->...bp", streams, model.W_U.T[targets])
    return normaliser.view_as(logits) - model.capped(logits if model.b_U is None else logits + model.b_U[targets])


def log_normalisers(model: Transformer, n_rows: int, logits: Callable[[slice], Tensor]) -> Float[Tensor, "row"]:
    """Logsumexp of each row of logits, computed a few rows at a time."""
    size = max(MIN_ROWS, at_once(LOGITS, model.W_E) // model.d_vocab)
    return torch.cat([logits(slice(i, i + size)).logsumexp(-1) for i in range(0, n_rows, size)])
