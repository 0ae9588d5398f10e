"""Norms of the stream, and of queries and keys."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from headstream.models.parameters import DeclaringModule, declared


class Norm(DeclaringModule):
    """LayerNorm, RMSNorm or nothing, by the architecture's choice."""

    def __init__(self, kind: str, width: int, epsilon: float, *, offset: bool = False) -> None:
        super().__init__()
        self.kind, self.epsilon, self.offset = kind, epsilon, offset
        start = 0 if offset else 1
        self.weight = declared("vector", width, in_products=False, start=start) if kind != "none" else None
        self.bias = declared("vector", width, in_products=False, start=0) if kind == "layernorm" else None

    def forward(self, x: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch width"]:
        """Normalise x over its last axis."""
        if self.kind == "layernorm":
            return F.layer_norm(x, x.shape[-1:], _like(self.gain, x), _like(self.bias, x), self.epsilon)
        return F.rms_norm(x, x.shape[-1:], _like(self.gain, x), self.epsilon) if self.kind == "rmsnorm" else x

    @property
    def gain(self) -> Tensor | None:
        """What a normalised vector is multiplied by: the weight, or 1 more; None without a norm."""
        return self.weight if self.weight is None or not self.offset else 1 + self.weight

    def scale(self, x: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch width"]:
        """The factor of each coordinate of x, centred in LayerNorm: gain over its standard deviation or size."""
        assert self.gain is not None
        if self.kind == "layernorm":
            return self.gain * (x.var(-1, correction=0, keepdim=True) + self.epsilon).rsqrt()
        return self.gain * (x.square().mean(-1, keepdim=True) + self.epsilon).rsqrt()

    def gain_of(self, n_heads: int) -> Float[Tensor, "*head width"] | None:
        """The gain as it acts on maps of so many heads, [head, d_model, width]; None without a norm."""
        return self.gain


class NormOverHeads(Norm):
    """One RMSNorm of the queries, or keys, of all heads of a layer together, as OLMo 2 has it."""

    def __init__(
        self, n_heads: int, width: int, epsilon: float, head_axis: int | None, *, offset: bool = False
    ) -> None:
        super().__init__("none", width, epsilon, offset=offset)
        self.kind = "rmsnorm"
        start = 0 if offset else 1
        self.weight = declared("vector", n_heads, width, in_products=False, head_axis=head_axis, start=start)

    def forward(self, x: Float[Tensor, "*batch head pos width"]) -> Float[Tensor, "*batch head pos width"]:
        """Normalise x over heads and their dimensions."""
        return x * self.scale(x.to(torch.promote_types(x.dtype, torch.float32))).to(x.dtype)

    def scale(self, x: Float[Tensor, "*batch head pos width"]) -> Float[Tensor, "*batch head pos width"]:
        """The factor of each coordinate of x, of which groups may be repeated for each of their heads."""
        return self.gain_of(x.shape[-3]) * (x.square().mean((-3, -1), keepdim=True) + self.epsilon).rsqrt()

    def gain_of(self, n_heads: int) -> Float[Tensor, "head 1 width"]:
        """The gain as it acts on maps of so many heads, those of a group alike."""
        assert self.gain is not None
        return self.gain.repeat_interleave(n_heads // max(1, len(self.gain)), 0)[:, None]


def _like(weight: Tensor | None, x: Tensor) -> Tensor | None:
    return None if weight is None else weight.to(x.dtype)
