"""Feed-forward layers, plain and gated."""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from headstream.models.architecture import Architecture
from headstream.models.parameters import DeclaringModule, declared

_gelu_tanh = partial(F.gelu, approximate="tanh")
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": _gelu_tanh,
    "swiglu": F.silu,
    "geglu": F.gelu,
    "geglu_tanh": _gelu_tanh,
}


class FeedForward(DeclaringModule):
    """Two maps with an activation between them; in a gated layer, a third map's activation multiplies the first.

    Source of gated layers: Shazeer 2020, GLU Variants Improve Transformer.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        a = architecture
        self.activation = ACTIVATIONS[a.feed_forward]
        self.W_in = declared("reading", a.d_model, a.mlp_width)
        self.W_gate = declared("reading", a.d_model, a.mlp_width) if a.gated_feed_forward else None
        self.W_out = declared("writing", a.mlp_width, a.d_model)
        self.b_in = declared("vector", a.mlp_width, start=0) if a.biases else None
        self.b_gate = declared("vector", a.mlp_width, start=0) if a.biases and a.gated_feed_forward else None
        self.b_out = declared("vector", a.d_model, start=0) if a.biases else None

    def forward(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        """The layer's output to the stream."""
        hidden = self.hidden(x)
        return hidden @ self.W_out if self.b_out is None else hidden @ self.W_out + self.b_out

    def hidden(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos neuron"]:
        """The neurons' activations, which W_out reads."""
        x = x.to(self.W_in.dtype)
        read = x @ self.W_in if self.b_in is None else x @ self.W_in + self.b_in
        if self.W_gate is None:
            return self.activation(read)
        return self.activation(x @ self.W_gate if self.b_gate is None else x @ self.W_gate + self.b_gate) * read
