"""Positions by formula: sinusoids, and rotations of queries and keys."""

from dataclasses import dataclass
from math import pi

import torch
from jaxtyping import Float
from torch import Tensor

SINUSOID_BASE = 10_000


def sinusoids(n: int, width: int, like: Tensor, base: float = SINUSOID_BASE) -> Float[Tensor, "pos width"]:
    """Sine and cosine at geometrically spaced wavelengths. Source: Vaswani et al. 2017, 3.5."""
    return _waves(n, _rates(width, like, base), like)[:, :width]


def _rates(width: int, like: Tensor, base: float) -> Float[Tensor, "pair"]:
    """Radians a position of each wave."""
    dtype = torch.promote_types(like.dtype, torch.float32)  # bfloat16 can't count positions
    return base ** (-torch.arange(0, width, 2, dtype=dtype, device=like.device) / width)


def _waves(n: int, rates: Float[Tensor, "pair"], like: Tensor) -> Float[Tensor, "pos 2*pair"]:
    angles = torch.arange(n, dtype=rates.dtype, device=like.device)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).to(like.dtype)


@dataclass(frozen=True)
class Rotary:
    """Rotary positions: pairs of coordinates rotated by angles that grow with position. Source: Su et al. 2021."""

    width: int  # number of coordinates, from the first on, that are rotated
    base: float
    half_split: bool  # True if pairs are i and i + width / 2, not 2 i and 2 i + 1
    stretch: float = 1.0  # of wavelengths
    stretched: tuple[float, ...] | None = None  # wavelengths up to which none, and from which on all is stretched

    def __call__(self, x: Float[Tensor, "*batch pos d_head"], first: int = 0) -> Float[Tensor, "*batch pos d_head"]:
        """Rotate queries or keys of positions from `first` on; those at position 0 stay."""
        sin, cos = _waves(first + x.shape[-2], self.rates(x), x)[first:].unflatten(1, (-1, 2)).unbind(-1)
        turned, rest = x[..., : self.width], x[..., self.width :]
        pairs, axis = ((2, -1), -2) if self.half_split else ((-1, 2), -1)
        first, second = turned.unflatten(-1, pairs).unbind(axis)
        turned = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=axis).flatten(-2)
        return torch.cat([turned, rest], dim=-1) if rest.shape[-1] else turned

    def rates(self, like: Tensor) -> Float[Tensor, "pair"]:
        """Radians a position of each pair. Source of stretching: Chen et al. 2023; of some alone, Llama 3.1's code."""
        rates = _rates(self.width, like, self.base)
        if self.stretch == 1:
            return rates
        if self.stretched is None:
            return rates / self.stretch
        first, last = self.stretched
        kept = ((last * rates / (2 * pi) - 1) / (last / first - 1)).clamp(0, 1)
        return rates * (kept + (1 - kept) / self.stretch)
