"""The matrices by which heads read from the stream and write to it: the input of every weight-only analysis.

Norms are folded into who reads or writes through them: their learned weights, and LayerNorm's centring, as coordinates
of the d_model - 1 directions that are left. That is exact but for one factor a position, the norm's scale, which no
weight says: it is left out, as are the terms that positions, feed-forward layers and constants add. A static gate is
folded into W_O; with dynamic gates, heads are as they are where they are open.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.models.gates import StaticGates
from headstream.models.hard_concrete import gates_without_noise
from headstream.models.norms import Norm
from headstream.models.transformer import Transformer


@dataclass(frozen=True)
class HeadWeights:
    """The matrices of a layer's heads, in the stream's coordinates."""

    W_Q: Float[Tensor, "head d_stream d_head"]
    W_K: Float[Tensor, "head d_stream d_head"]
    W_V: Float[Tensor, "head d_stream d_value"]
    W_O: Float[Tensor, "head d_value d_stream"]
    b_Q: Float[Tensor, "head d_head"]  # the one bias that moves attention between tokens; 0 under norms: no scale
    scale: float  # of scores before softmax


@dataclass(frozen=True)
class CircuitWeights:
    """A model's matrices with its norms folded in."""

    W_E: Float[Tensor, "d_vocab d_stream"]
    W_U: Float[Tensor, "d_stream d_vocab"]
    layers: tuple[HeadWeights, ...]

    @property
    def d_stream(self) -> int:
        """Dimensions of the stream that anything reads: d_model, or one less under LayerNorm."""
        return self.W_E.shape[1]

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        """Head count of each layer."""
        return tuple(len(layer.W_Q) for layer in self.layers)


def why_no_circuits(architecture: Architecture) -> str | None:
    """Why a model's paths are no products of its weights; None where they are."""
    if architecture.normalization != "none" and architecture.normalization_place == "post":
        return (
            "normalization_place must be 'pre' for circuits to be products of weights, got 'post': the stream is"
            " normalised between one head's writing and another's reading. Use 'pre', or normalization = 'none'."
        )
    return None


@torch.no_grad()
def circuit_weights(model: Transformer) -> CircuitWeights:
    """Take a model's matrices out of it, its norms folded in.

    Raises:
        ValueError: the norms lie between the layers (`why_no_circuits`), or a weight is not finite.
    """
    if reason := why_no_circuits(model.architecture):
        raise ValueError(reason)
    for name, parameter in model.named_parameters():
        if not parameter.isfinite().all():
            raise ValueError(
                f"weights must be finite, got {int((~parameter.isfinite()).sum())} in {name} that are not."
                " Take an earlier checkpoint, or train at a lower learning rate."
            )
    basis = _stream_basis(model)
    return CircuitWeights(
        W_E=_written(model.token_vectors, basis),
        W_U=_read(model.W_U, model.final_norm, basis),
        layers=tuple(_heads(model, layer, basis) for layer in range(len(model.layers))),
    )


def _heads(model: Transformer, layer: int, basis: Float[Tensor, "d_model d_stream"] | None) -> HeadWeights:
    own = model.layers[layer]
    attention, norm = own.attention, own.attention_norm
    no_scale = norm.kind == attention.q_norm.kind == "none"
    b_Q = attention.b_Q if attention.b_Q is not None and no_scale else torch.zeros_like(attention.W_Q[:, 0])
    W_O: Tensor = attention.W_O
    if isinstance(attention.gates, StaticGates):
        W_O = W_O * gates_without_noise(attention.gates.log_alpha)[:, None, None]
    W_O = _normalised(W_O, own.attention_out_norm)
    return HeadWeights(
        W_Q=_read(_widened(attention.W_Q, attention.q_norm), norm, basis),
        W_K=_read(_widened(attention.W_K, attention.k_norm), norm, basis),
        W_V=_read(attention.W_V, norm, basis),
        W_O=_written(W_O, basis),
        b_Q=b_Q,
        scale=attention.scale,
    )


def _stream_basis(model: Transformer) -> Float[Tensor, "d_model d_stream"] | None:
    """Orthonormal columns that span what LayerNorm lets through, all that has mean 0; None for all of the stream."""
    if model.architecture.normalization != "layernorm" or model.architecture.normalization_place == "output":
        return None
    eye = torch.eye(model.architecture.d_model, dtype=model.W_E.dtype, device=model.W_E.device)
    return torch.linalg.qr(torch.cat([torch.ones_like(eye[:, :1]), eye[:, 1:]], dim=1)).Q[:, 1:]


def _read(
    weight: Float[Tensor, "*head d_model width"], norm: Norm, basis: Float[Tensor, "d_model d_stream"] | None
) -> Float[Tensor, "*head d_stream width"]:
    scaled = weight if norm.gain is None else norm.gain[:, None] * weight
    if basis is not None:
        return basis.T @ scaled
    return scaled - scaled.mean(-2, keepdim=True) if norm.kind == "layernorm" else scaled


def _written(
    weight: Float[Tensor, "*head width d_model"], basis: Float[Tensor, "d_model d_stream"] | None
) -> Float[Tensor, "*head width d_stream"]:
    return weight if basis is None else weight @ basis


def _normalised(W_O: Float[Tensor, "head d_value d_model"], norm: Norm) -> Float[Tensor, "head d_value d_model"]:
    """What heads write, after a norm of it."""
    if norm.gain is None:
        return W_O
    return (W_O - W_O.mean(-1, keepdim=True) if norm.kind == "layernorm" else W_O) * norm.gain


def _widened(weight: Float[Tensor, "head d_model d_head"], norm: Norm) -> Float[Tensor, "head d_model d_head"]:
    own = norm.gain_of(len(weight))
    return weight if own is None else weight * own
