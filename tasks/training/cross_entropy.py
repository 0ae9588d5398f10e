"""The training loss, twice: torch's own, and one whose gradient compiles to a single pass over the logits."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

CrossEntropy = Callable[..., Float[Tensor, ""]]  # of logits, targets and, by name, which of these are learned


def mean_cross_entropy(
    logits: Float[Tensor, "batch pos d_vocab"],
    targets: Int[Tensor, "batch pos"],
    learned: Bool[Tensor, "batch pos"] | None = None,
) -> Float[Tensor, ""]:
    """Mean cross-entropy in nats, in float32, over all targets or over those that are learned."""
    if learned is None:
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
    losses = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction="none")
    return (losses * _shares(learned)).sum()


def mean_cross_entropy_in_one_pass(
    logits: Float[Tensor, "batch pos d_vocab"],
    targets: Int[Tensor, "batch pos"],
    learned: Bool[Tensor, "batch pos"] | None = None,
) -> Float[Tensor, ""]:
    """`mean_cross_entropy` in a form to be compiled; without compiling it is slower."""
    if learned is not None:
        return mean_cross_entropy(logits, targets, learned)
    loss: Tensor = _InOnePass.apply(logits, targets)
    return loss


def _shares(learned: Bool[Tensor, "batch pos"]) -> Float[Tensor, "_"]:
    """The share of each target, one after the other, in the mean over those that are learned."""
    return learned.flatten().float() / learned.sum().clamp(min=1)


class _InOnePass(torch.autograd.Function):
    """Avoids a sum in the gradient of log-softmax, where torch adds up the incoming gradient of each row.

    Here only the target has an incoming gradient, so there is nothing to sum.
    """

    @staticmethod
    def forward(
        context: Any, logits: Float[Tensor, "batch pos d_vocab"], targets: Int[Tensor, "batch pos"]
    ) -> Float[Tensor, ""]:
        """Mean cross-entropy in nats, in float32."""
        log_probabilities, of = logits.flatten(0, 1).float().log_softmax(-1), targets.flatten()[:, None]
        context.save_for_backward(log_probabilities, of)
        context.shape, context.dtype = logits.shape, logits.dtype
        return -log_probabilities.gather(1, of).mean()

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """The gradient of the logits, in their dtype: probabilities minus 1 at the target, over the number of rows."""
        log_probabilities, of = context.saved_tensors
        share = gradients[0] / len(of)
        columns = torch.arange(log_probabilities.shape[1], dtype=torch.int32, device=of.device)
        gradient = log_probabilities.exp() * share - torch.where(columns == of.int(), share, 0.0)
        return gradient.to(context.dtype).view(context.shape), None
