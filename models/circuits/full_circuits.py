"""A head's circuits from token to token: the full QK and the full OV circuit, as factors.

The [d_vocab, d_vocab] product is read a few rows at a time and never held. Rotary positions turn queries and keys by
their distance: what is read here is distance 0. A relative position's bias adds to the score, whatever the tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.circuits.head_weights import CircuitWeights

CHUNK_NUMBERS = 2**18  # entries of a full circuit held at once: what a CPU keeps in its cache


@dataclass(frozen=True)
class FullCircuit:
    """A matrix from tokens to tokens as the product left @ right."""

    left: Float[Tensor, "row rank"]
    right: Float[Tensor, "rank column"]

    def rows(self, index: Int[Tensor, "chunk"]) -> Float[Tensor, "chunk column"]:
        """The rows of the product at an index."""
        return self.left[index] @ self.right

    def chunks(self, index: Int[Tensor, "row"]) -> Iterator[tuple[Int[Tensor, "chunk"], Float[Tensor, "chunk column"]]]:
        """The rows of the product at an index, a few at a time, each chunk after its part of the index."""
        size = max(1, CHUNK_NUMBERS // max(1, self.right.shape[1]))
        return ((part, self.rows(part)) for part in index.split(size))

    def centred(self, weight: Float[Tensor, "column"] | None = None) -> "FullCircuit":
        """The circuit less each row's mean, which softmax can't see; plain, or weighted by numbers that sum to 1."""
        mean = self.right.mean(1) if weight is None else self.right @ weight
        return replace(self, right=self.right - mean[:, None])


def full_qk(weights: CircuitWeights, layer: int, head: int) -> FullCircuit:
    """Attention score from destination token to source token, W_E QK W_E^T / sqrt(d_head): [destination, source].

    Source: Elhage et al. 2021, "query-key circuit".
    """
    own = weights.layers[layer]
    queries = weights.W_E @ own.W_Q[head] + own.b_Q[head]
    return FullCircuit(queries * own.W_Q.shape[2] ** -0.5, (weights.W_E @ own.W_K[head]).T)


def full_ov(weights: CircuitWeights, layer: int, head: int) -> FullCircuit:
    """Logits that attending to a source token adds, W_E OV W_U: [source, output].

    Source: Elhage et al. 2021, "output-value circuit".
    """
    own = weights.layers[layer]
    return FullCircuit(weights.W_E @ own.W_V[head], own.W_O[head] @ weights.W_U)


def score_spread(circuit: FullCircuit, weight: Float[Tensor, "token"]) -> Float[Tensor, ""]:
    """Standard deviation of a QK circuit's scores over sources, tokens weighted by numbers that sum to 1.

    That is what the tokens have to say about where to look, in units of pre-softmax score.
    """
    keys = circuit.centred(weight).right
    queries, keys = circuit.left.double(), keys.double()
    weight = weight.double()
    return torch.sum((queries.T * weight @ queries) * (keys * weight @ keys.T)).clamp(min=0).sqrt()


def position_spread(bias: Float[Tensor, "head distance"], distances: range) -> Float[Tensor, "head"]:
    """Standard deviation of a relative position bias over the keys that a query sees, in units of pre-softmax score.

    The variance is averaged over queries at all positions. Keys are at some distances from 0 on.
    """
    position = torch.arange(bias.shape[1], device=bias.device)
    bias = bias[:, distances.start : distances.stop : distances.step].double()
    n_seen = torch.arange(1, bias.shape[1] + 1, device=bias.device)
    mean, mean_square = bias.cumsum(1) / n_seen, (bias**2).cumsum(1) / n_seen
    variance = (mean_square - mean**2).clamp(min=0)  # of a query that sees so many keys, the nearest
    return variance[:, (position // distances.step).clamp(max=len(n_seen) - 1)].mean(1).sqrt()
