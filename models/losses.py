"""Next-token losses, in nats per token, and what they say about the use of context."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from models.batching import batches
from models.transformer import Fill, HeadMask, Transformer


@dataclass(frozen=True)
class TextLosses:
    """Losses on sequences of running text."""

    validation_loss_nats: float
    validation_loss_sem_nats: float  # standard error over sequences; NaN for a single sequence
    in_context_learning_nats: float  # late loss minus early loss: negative = context helps
    early_index: int
    late_index: int
    position_losses_nats: Float[Tensor, "pos"]


@dataclass(frozen=True)
class RepeatLosses:
    """Losses on repeated random tokens, by how often the predicted token has come (NaN where none has)."""

    first_occurrence_loss_nats: float
    later_occurrence_loss_nats: float
    repeat_gain_nats: float  # first minus later: positive = repeats are predicted
    occurrence_losses_nats: Float[Tensor, "occurrence"]  # entry 0 is the first occurrence


def token_losses(
    logits: Float[Tensor, "batch pos d_vocab"], targets: Int[Tensor, "batch pos"]
) -> Float[Tensor, "batch pos"]:
    """Cross-entropy of each prediction in nats, in float32 or better."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")


def sequence_losses(
    model: Transformer, sequences: Int[Tensor, "batch pos"], head_mask: HeadMask | None = None, fill: Fill | None = None
) -> Float[Tensor, "batch"]:
    """Mean loss of each sequence, of predicting each token but the first, in float64.

    Masked heads are replaced by `fill` (see `Transformer.forward`), which must not differ from sequence to sequence.
    """
    losses = [
        token_losses(model(batch[:, :-1], head_mask, fill), batch[:, 1:]).double().mean(1).cpu()
        for batch in batches(model, sequences)
    ]
    return torch.cat(losses)


def next_token_losses(model: Transformer, sequences: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos-1"]:
    """Loss of predicting each token but the first."""
    losses = [token_losses(model(batch[:, :-1]), batch[:, 1:]).cpu() for batch in batches(model, sequences)]
    return torch.cat(losses)


def context_indices(n: int) -> tuple[int, int]:
    """Early and late position to compare: 50 and 500 of 506 positions or more, else 0.1 n and 0.95 n.

    Source: Olsson et al. 2022, "in-context learning score".
    """
    return (50, 500) if n > 505 else (n // 10, n * 19 // 20)


def text_losses(losses: Float[Tensor, "batch pos"]) -> TextLosses:
    """Summary of the losses on sequences of running text.

    The early and late loss are means over 5 positions either side, fewer (but as many on both sides) at the
    ends of a short sequence.
    """
    by_sequence, by_position = losses.double().mean(1), losses.double().mean(0)
    early, late = context_indices(losses.shape[1])

    def around(index: int) -> float:
        reach = min(5, index, len(by_position) - 1 - index)
        return float(by_position[index - reach : index + reach + 1].mean())

    n = len(by_sequence)
    return TextLosses(
        validation_loss_nats=float(by_sequence.mean()),
        validation_loss_sem_nats=float(by_sequence.std() / n**0.5) if n > 1 else float("nan"),
        in_context_learning_nats=around(late) - around(early),
        early_index=early,
        late_index=late,
        position_losses_nats=by_position,
    )


def repeat_losses(losses: Float[Tensor, "batch pos"], occurrence: Int[Tensor, "batch pos"]) -> RepeatLosses:
    """Summary of the losses on repeated tokens; `occurrence` counts from 1 at the first."""
    losses = losses.double()
    first = losses[occurrence == 1].mean()
    later = losses[occurrence > 1].mean()
    index = occurrence.flatten() - 1
    total = torch.bincount(index, weights=losses.flatten())
    return RepeatLosses(float(first), float(later), float(first - later), total / torch.bincount(index))
