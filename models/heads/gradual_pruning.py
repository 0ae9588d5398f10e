"""Pruning during training: the heads that matter least to the loss are removed one by one.

A pruned head writes nothing (its W_O is exactly 0) and no longer learns.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstream.models.transformer import Transformer

PRUNING_BEGINS, PRUNING_ENDS = 0.25, 0.75  # fractions of training between which heads are pruned
IMPORTANCE_DECAY = 0.98  # of the running mean of importance, per step


def n_heads_left(step: int, n_steps: int, n_heads: int, share_left: float) -> int:
    """Number of heads left after a step: many are pruned early, few late. Source: Zhu & Gupta 2017, equation 1.

    >>> [n_heads_left(step, 100, 8, share_left=0.5) for step in (25, 30, 40, 50, 75, 100)]
    [8, 7, 6, 5, 4, 4]
    """
    progress = min(1.0, max(0.0, (step / n_steps - PRUNING_BEGINS) / (PRUNING_ENDS - PRUNING_BEGINS)))
    left = share_left + (1 - share_left) * (1 - progress) ** 3
    return math.ceil(round(n_heads * left, 9))


class GradualPruning:
    """The heads of a model in training that are left, and the importance of each.

    Importance is the running mean over batches of |sum over tokens of z . dL/dz|, which equals |<W_O, dL/dW_O>| and so
    comes from the gradient of the step. Source: Michel et al. 2019, equation 2, with one absolute value per batch.
    """

    def __init__(self, model: Transformer, n_steps: int, share_left: float) -> None:
        self.n_steps, self.share_left = n_steps, share_left
        self._writing = [layer.attention.W_O for layer in model.layers]
        n_heads, device = sum(map(len, self._writing)), model.W_E.device
        self.importance: Float[Tensor, "head"] = torch.zeros(n_heads, dtype=model.W_E.dtype, device=device)
        self.left: Bool[Tensor, "head"] = torch.ones(n_heads, dtype=torch.bool, device=device)
        self.n_left = n_heads

    @torch.no_grad()
    def before_step(self) -> None:
        """Update importance from the gradients of a batch, and zero those of pruned heads."""
        gradients = [W_O.grad for W_O in self._writing if W_O.grad is not None]
        products = [(W_O * gradient).sum((1, 2)) for W_O, gradient in zip(self._writing, gradients, strict=True)]
        products.append(self.importance[:0])  # there may be no layer
        self.importance.lerp_(torch.cat(products).abs(), 1 - IMPORTANCE_DECAY)
        self._close(gradients)

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        """Prune the least important heads down to the number for this step, and keep pruned ones at zero."""
        self.n_left = n_heads_left(step, self.n_steps, len(self.left), self.share_left)
        self.left[self.importance.where(self.left, -1.0).argsort(descending=True)[self.n_left :]] = False
        self._close([W_O.data for W_O in self._writing])

    def _close(self, tensors: list[Tensor]) -> None:
        for tensor, left in zip(tensors, self.left.split([len(W_O) for W_O in self._writing]), strict=True):
            tensor.mul_(left[:, None, None])
