"""Muon, an optimiser for matrices, and the schedule of learning rates."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def orthogonalise(matrices: Float[Tensor, "batch rows cols"]) -> Float[Tensor, "batch rows cols"]:
    """Bring every singular value of each matrix near 1 by a quintic Newton-Schulz iteration.

    Source: Jordan et al. 2024, Muon; the coefficients overshoot on purpose (values end in about 0.7..1.2).
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices  # the Gram matrix of the short side is the small one
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.transpose(1, 2)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.transpose(1, 2) if tall else x


class Muon(torch.optim.Optimizer):
    """Orthogonalised momentum: every matrix moves by a map whose singular values all equal the learning rate.

    The heads of a layer count as one matrix: side by side if they read from the stream ([head, d_model, width]), on
    top of each other if they write to it ([head, width, d_model]); heads on their own train worse. All matrices of one
    shape are stacked and updated at once, since single ones are too small to keep a core busy. The iteration
    multiplies in `products`: bfloat16 is precise enough, but slower than float32 without hardware for it.
    Source: Jordan et al. 2024, with Nesterov momentum.
    """

    def __init__(
        self,
        reading: Iterable[Tensor],
        writing: Iterable[Tensor],
        lr: float,
        weight_decay: float,
        products: torch.dtype,
    ) -> None:
        reading = list(reading)
        self._n_reading, self._products = len(reading), products
        super().__init__([*reading, *writing], {"lr": lr, "momentum": 0.95, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Take one step from the gradients."""
        (group,) = self.param_groups
        moving = [
            (p, p.grad, place >= self._n_reading)
            for place, p in enumerate(group["params"])
            if p.grad is not None and p.numel()
        ]
        if not moving:
            return
        parameters, gradients, writes = (list(parts) for parts in zip(*moving, strict=True))
        momenta = [self._momentum(p) for p in parameters]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, momenta, group["momentum"])
        changes = self._changes(ahead, writes)
        rate = group["lr"]
        torch._foreach_mul_(parameters, 1 - rate * group["weight_decay"])
        if isinstance(rate, Tensor):  # passed as alpha, it would be read, and the CPU would wait for the GPU
            torch._foreach_sub_(parameters, torch._foreach_mul(changes, rate))
        else:
            torch._foreach_sub_(parameters, changes, alpha=rate)

    def _momentum(self, p: Tensor) -> Tensor:
        state = self.state[p]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(p)
        return state["momentum"]

    def _changes(self, ahead: Sequence[Tensor], writes: Sequence[bool]) -> list[Tensor]:
        """The change of each parameter at a learning rate of 1."""
        joined = [_join_heads(x, own) for x, own in zip(ahead, writes, strict=True)]
        stacks: dict[torch.Size, list[int]] = defaultdict(list)
        for place, matrix in enumerate(joined):
            stacks[matrix.shape].append(place)
        changes = list(ahead)
        for places in stacks.values():
            stack = torch.stack([joined[place] for place in places])
            updates = orthogonalise(stack.to(self._products)).to(stack.dtype)
            for place, update in zip(places, updates, strict=True):
                changes[place] = _split_heads(update, ahead[place], writes[place])
        return changes


def _join_heads(x: Tensor, writes: bool) -> Float[Tensor, "rows cols"]:
    if x.ndim == 2:
        return x
    return x.flatten(0, 1) if writes else x.transpose(0, 1).flatten(1)


def _split_heads(matrix: Float[Tensor, "rows cols"], like: Tensor, writes: bool) -> Tensor:
    if like.ndim == 2 or writes:
        return matrix.view(like.shape)
    return matrix.unflatten(1, (like.shape[0], like.shape[2])).transpose(0, 1)


def rate_factor(step: int, n_steps: int, warmup_steps: int, final_fraction: float) -> float:
    """The factor on learning rates at a step: linear warm-up, then a cosine down to the final fraction.

    >>> [round(rate_factor(s, 300, 100, 0.1), 2) for s in (0, 49, 99, 200, 300)]
    [0.01, 0.5, 1.0, 0.55, 0.1]
    """
    warm = min(1.0, (step + 1) / warmup_steps) if warmup_steps else 1.0
    progress = max(0.0, step - warmup_steps) / max(1, n_steps - warmup_steps)
    return warm * (final_fraction + (1 - final_fraction) * (1 + math.cos(math.pi * min(1.0, progress))) / 2)
