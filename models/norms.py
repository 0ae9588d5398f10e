"""Norms of the stream, and of queries and keys."""

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from headstream.models.parameters import DeclaringModule, declared


class Norm(DeclaringModule):
    """LayerNorm, RMSNorm or nothing, by the architecture's choice."""

    def __init__(self, kind: str, width: int, epsilon: float) -> None:
        super().__init__()
        self.kind, self.epsilon = kind, epsilon
        self.weight = declared("vector", width, in_products=False, start=1) if kind != "none" else None
        self.bias = declared("vector", width, in_products=False, start=0) if kind == "layernorm" else None

    def forward(self, x: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch width"]:
        """Normalise x over its last axis."""
        if self.kind == "layernorm":
            return F.layer_norm(x, x.shape[-1:], _like(self.weight, x), _like(self.bias, x), self.epsilon)
        return F.rms_norm(x, x.shape[-1:], _like(self.weight, x), self.epsilon) if self.kind == "rmsnorm" else x


def _like(weight: Tensor | None, x: Tensor) -> Tensor | None:
    return None if weight is None else weight.to(x.dtype)
