"""A head's circuits from token to token: the full QK and the full OV circuit, as factors.

The [d_vocab, d_vocab] product is read a few rows at a time and never held. Rotary positions turn queries and keys by
their distance: what is read here is distance 0. A relative position's bias adds to the score, whatever the tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.batching import at_once
from headstream.models.circuits.head_weights import CircuitWeights, HeadWeights

MOMENT_TOKENS = 2**12  # taken into moments at once
_CHUNK_NUMBERS = 2**18  # entries of a full circuit held at once: what a CPU keeps in its cache


@dataclass(frozen=True)
class FullCircuit:
    """A matrix from tokens to tokens as the product left @ right."""

    left: Float[Tensor, "row rank"]
    right: Float[Tensor, "rank column"]

    def rows(self, index: Int[Tensor, "chunk"]) -> Float[Tensor, "chunk column"]:
        """The rows of the product at an index."""
        return self.left[index] @ self.right

    def chunks(self) -> Iterator[tuple[Int[Tensor, "chunk"], Float[Tensor, "chunk column"]]]:
        """All rows of the product, a few at a time, each chunk after its index."""
        size = max(1, at_once(_CHUNK_NUMBERS, self.left) // max(1, self.right.shape[1]))
        every = torch.arange(len(self.left), device=self.left.device)
        return ((part, self.rows(part)) for part in every.split(size))

    def less(self, mean: Float[Tensor, "_"]) -> "FullCircuit":
        """The circuit less what it would be at one more column, such as the mean of all, which softmax can't see."""
        return replace(self, right=self.right - mean[:, None])


def full_qk(weights: CircuitWeights, layer: int, head: int, tokens: Int[Tensor, "token"] | None = None) -> FullCircuit:
    """Attention score from destination token to source token, W_E QK W_E^T times its scale: [destination, source].

    Of all tokens, or of some. Source: Elhage et al. 2021, "query-key circuit".
    """
    own, W_E = weights.layers[layer], weights.W_E if tokens is None else weights.W_E[tokens]
    queries = W_E @ own.W_Q[head] + own.b_Q[head]
    return FullCircuit(queries * own.scale, (W_E @ own.W_K[head]).T)


def full_ov(
    weights: CircuitWeights,
    layer: int,
    head: int,
    sources: Int[Tensor, "source"] | None = None,
    outputs: Int[Tensor, "_"] | None = None,
) -> FullCircuit:
    """Logits that attending to a source token adds, W_E OV W_U: [source, output].

    Of all tokens, or of some. Source: Elhage et al. 2021, "output-value circuit".
    """
    own = weights.layers[layer]
    W_E = weights.W_E if sources is None else weights.W_E[sources]
    W_U = weights.W_U if outputs is None else weights.W_U[:, outputs]
    return FullCircuit(W_E @ own.W_V[head], own.W_O[head] @ W_U)


@dataclass(frozen=True)
class TokenMoments:
    """Moments of a corpus' tokens, which give spreads: means of embeddings and of products of two coordinates."""

    mean: Float[Tensor, "_"]
    product: Float[Tensor, "d_stream d_stream"]


def token_moments(W_E: Float[Tensor, "token d_stream"], weight: Float[Tensor, "token"]) -> TokenMoments:
    """Moments in float64 of tokens weighted by numbers that sum to 1."""
    mean = W_E.new_zeros(W_E.shape[1], dtype=torch.float64)
    product = torch.outer(mean, mean)
    for part, own in zip(W_E.split(MOMENT_TOKENS), weight.double().split(MOMENT_TOKENS), strict=True):
        weighted = part.double() * own[:, None]
        mean, product = mean + weighted.sum(0), product + weighted.T @ part.double()
    return TokenMoments(mean, product)


def score_spread(heads: HeadWeights, tokens: TokenMoments) -> Float[Tensor, "head"]:
    """Standard deviation of each full QK circuit's scores over sources, pooled over destinations.

    That is what the tokens have to say about where to look, in units of pre-softmax score.
    """
    W_Q, W_K, b_Q = heads.W_Q.double(), heads.W_K.double(), heads.b_Q.double()
    along_bias = (tokens.mean @ W_Q)[:, :, None] * b_Q[:, None]
    queries = W_Q.mT @ tokens.product @ W_Q + along_bias + along_bias.mT + b_Q[:, :, None] * b_Q[:, None]
    keys = W_K.mT @ (tokens.product - torch.outer(tokens.mean, tokens.mean)) @ W_K
    return (queries * keys).sum((1, 2)).clamp(min=0).sqrt() * heads.scale


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
