"""Gates that train with their model: the mixed values of each head are multiplied by its gate, 0..1."""

import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.hard_concrete import OPEN_LOG_ALPHA, gates_without_noise, open_probability
from headstream.models.parameters import DeclaringModule, declared


class StaticGates(DeclaringModule):
    """Gates that are the same for every token: one hard-concrete gate per head, without noise.

    Training adds noise by replacing log_alpha by `hard_concrete.noisy`, with a row per sequence.
    """

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.log_alpha = declared("gate", n_heads, in_products=False, head_axis=0, start=OPEN_LOG_ALPHA)

    def forward(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch head pos"]:
        """The gates for heads that read x."""
        return gates_without_noise(self.log_alpha)[..., None].expand(len(x), -1, x.shape[1])


class DynamicGates(DeclaringModule):
    """A gate per head and token: 1 if a linear function of the head's input is above 0, otherwise 0.

    Its gradient is that of the function's sigmoid (straight-through). Source: Bengio et al. 2013, Estimating or
    Propagating Gradients Through Stochastic Neurons.
    """

    def __init__(self, n_heads: int, d_model: int) -> None:
        super().__init__()
        self.direction = declared("gate", n_heads, d_model, in_products=False, head_axis=0, start=0)
        self.offset = declared("gate", n_heads, in_products=False, head_axis=0, start=1)  # open at first

    def forward(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch head pos"]:
        """The gates for heads that read x."""
        soft = (x.to(self.direction.dtype) @ self.direction.T + self.offset).sigmoid().transpose(1, 2)
        return (soft > 0.5).to(soft.dtype) + (soft - soft.detach())


def expected_open(log_alpha: list[Float[Tensor, "_"]]) -> Float[Tensor, ""]:
    """Expected number of open heads under the noise of static gates, given their log_alpha layer by layer."""
    return open_probability(torch.cat(log_alpha)).sum()


def active_fraction(gates: list[Float[Tensor, "batch _ pos"]]) -> Float[Tensor, ""]:
    """Fraction of gates that are open, over all heads and tokens."""
    return torch.cat(gates, dim=1).mean()
