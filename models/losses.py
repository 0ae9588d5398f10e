"""Next-token losses, in nats per token, and measures of the use of context derived from them."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from headstream.models.batching import batches
from headstream.models.clustered_errors import clustered_mean
from headstream.models.transformer import Fill, HeadMask, Transformer

Losses = dict[str, float | int | Float[Tensor, "_"]]


def token_losses(
    logits: Float[Tensor, "batch pos d_vocab"], targets: Int[Tensor, "batch pos"]
) -> Float[Tensor, "batch pos"]:
    """Cross-entropy of each prediction in nats, in float32 or better."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets)


def sequence_losses(
    model: Transformer, sequences: Int[Tensor, "batch pos"], head_mask: HeadMask | None = None, fill: Fill | None = None
) -> Float[Tensor, "batch"]:
    """Mean loss of each sequence, over all tokens but the first, in float64.

    Masked heads are replaced by `fill` (see `Transformer.forward`), which must not differ from sequence to sequence.
    """
    losses = [
        token_losses(model(batch[:, :-1], head_mask, fill), batch[:, 1:]).double().mean(1).cpu()
        for batch in batches(model, sequences)
    ]
    return torch.cat(losses)


def next_token_losses(model: Transformer, sequences: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos-1"]:
    """Loss of every token but the first."""
    losses = [token_losses(model(batch[:, :-1]), batch[:, 1:]).cpu() for batch in batches(model, sequences)]
    return torch.cat(losses)


def text_losses(losses: Float[Tensor, "batch pos"], documents: Int[Tensor, "batch"]) -> Losses:
    """Summary of the losses on sequences of running text, with standard errors over their documents.

    In-context learning is the loss at a late position (500 of 506 or more, else 0.95 n) minus that at an early one (50
    or 0.1 n). Both are means over 5 positions on either side, or equally many fewer near the ends of a short sequence.
    Source: Olsson et al. 2022, "in-context learning score".
    """
    losses, n = losses.double(), losses.shape[1]
    early, late = (50, 500) if n > 505 else (n // 10, n * 19 // 20)

    def around(index: int) -> Float[Tensor, "batch"]:
        reach = min(5, index, n - 1 - index)
        return losses[:, index - reach : index + reach + 1].mean(1)

    loss = clustered_mean(losses.mean(1), documents)
    learning = clustered_mean(around(late) - around(early), documents)
    return {
        "validation_loss_nats": loss.mean.item(),
        "validation_loss_sem_nats": loss.sem.item(),
        "n_windows": len(losses),
        "n_documents": len(documents.unique()),
        "in_context_learning_nats": learning.mean.item(),  # negative: context helps
        "in_context_learning_sem_nats": learning.sem.item(),
        "early_index": early,
        "late_index": late,
        "position_losses_nats": losses.mean(0),
    }


def repeat_losses(losses: Float[Tensor, "batch pos"], occurrence: Int[Tensor, "batch pos"]) -> Losses:
    """Summary of the losses on repeated tokens, NaN if there are none; `occurrence` counts from 1 at the first.

    The standard error of the gain is over sequences, which are drawn independently.

    """
    losses = losses.double()
    of_first, of_later = (losses.where(own, torch.nan) for own in (occurrence == 1, occurrence > 1))
    first, later = of_first.nanmean(), of_later.nanmean()
    index = occurrence.flatten() - 1
    total = torch.bincount(index, weights=losses.flatten())
    return {
        "first_occurrence_loss_nats": float(first),
        "later_occurrence_loss_nats": float(later),
        "repeat_gain_nats": float(first - later),  # positive: repeats are predicted
        "repeat_gain_sem_nats": float(sem_of_parts(parts_of_mean(of_first) - parts_of_mean(of_later))),
        "occurrence_losses_nats": total / torch.bincount(index),
    }


def parts_of_mean(values: Float[Tensor, "*quantities sequence pos"]) -> Float[Tensor, "*quantities sequence"]:
    """The contribution of each sequence to the error of the mean over all values that are not NaN; they sum to 0.

    Source: Cochran 1977, Sampling Techniques, section 6.3: sequences may have different numbers of values.
    """
    deviations = values - values.nanmean(dim=(-2, -1), keepdim=True)
    return deviations.nansum(-1) / values.isfinite().sum(dim=(-2, -1))[..., None]


def sem_of_parts(
    parts: Float[Tensor, "*quantities sequence"], cluster: Int[Tensor, "sequence"] | None = None
) -> Float[Tensor, "*quantities"]:
    """Standard error of a mean from its `parts_of_mean`, over clusters, or over sequences if none are given."""
    n = parts.shape[-1]
    return clustered_mean(parts * n, torch.arange(n) if cluster is None else cluster).sem
