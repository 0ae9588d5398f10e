"""Positions by formula: sinusoids, and rotations of queries and keys."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

SINUSOID_BASE = 10_000


def sinusoids(n: int, width: int, like: Tensor, base: float = SINUSOID_BASE) -> Float[Tensor, "pos width"]:
    """Sine and cosine at geometrically spaced wavelengths. Source: Vaswani et al. 2017, 3.5."""
    dtype = torch.promote_types(like.dtype, torch.float32)  # bfloat16 can't count positions
    position = torch.arange(n, dtype=dtype, device=like.device)[:, None]
    rate = base ** (-torch.arange(0, width, 2, dtype=dtype, device=like.device) / width)
    return torch.stack([(position * rate).sin(), (position * rate).cos()], dim=-1).flatten(1)[:, :width].to(like.dtype)


@dataclass(frozen=True)
class Rotary:
    """Rotary positions: pairs of coordinates rotated by angles that grow with position. Source: Su et al. 2021."""

    width: int  # number of coordinates, from the first on, that are rotated
    base: float
    half_split: bool  # True if pairs are i and i + width / 2, not 2 i and 2 i + 1

    def __call__(self, x: Float[Tensor, "*batch pos d_head"]) -> Float[Tensor, "*batch pos d_head"]:
        """Rotate queries or keys; those at the first position stay."""
        sin, cos = sinusoids(x.shape[-2], self.width, x, self.base).unflatten(1, (-1, 2)).unbind(-1)
        turned, rest = x[..., : self.width], x[..., self.width :]
        pairs, axis = ((2, -1), -2) if self.half_split else ((-1, 2), -1)
        first, second = turned.unflatten(-1, pairs).unbind(axis)
        turned = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=axis).flatten(-2)
        return torch.cat([turned, rest], dim=-1) if rest.shape[-1] else turned
