"""Composition scores: how strongly a later head reads what an earlier one writes, and how strongly it would by chance.

score = ||left right||_F / (||left||_F ||right||_F), left = OV1 of the earlier head, right = QK2 (Q), QK2^T (K) or OV2
(V) of the later one. Turning a matrix on its outer side keeps all these norms, so each is replaced by a factor as thin
as a head: no [d_model, d_model] product is formed. Source: Elhage et al. 2021.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from headstream.models.circuits.head_factors import reader_factors, writer_factors
from headstream.models.circuits.head_weights import CircuitWeights
from headstream.models.nodes import HEAD_PORTS

PairKind = Float[Tensor, "pair 3"]  # a row a pair of `head_pairs`, a column a port of HEAD_PORTS


@dataclass(frozen=True)
class Composition:
    """Scores of all pairs, and their null between heads turned at random; NaN where a head has no weights."""

    score: PairKind  # 0..1
    null_mean: float  # of score^2
    null_sd: PairKind  # of score^2

    @property
    def z(self) -> PairKind:
        """The number of standard deviations by which score^2 exceeds its mean under the null."""
        return (self.score**2 - self.null_mean) / self.null_sd


def head_pairs(heads_per_layer: tuple[int, ...]) -> Int[Tensor, "pair 4"]:
    """Every pair of an earlier and a later head: writing layer and head, reading layer and head."""
    pairs = [
        (writer_layer, writer, layer, reader)
        for layer in range(len(heads_per_layer))
        for writer_layer in range(layer)
        for writer in range(heads_per_layer[writer_layer])
        for reader in range(heads_per_layer[layer])
    ]
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 4)


@torch.no_grad()
def composition(weights: CircuitWeights) -> Composition:
    """Q-, K- and V-composition of every pair, with mean and standard deviation of their analytic null.

    Under the null E[score^2] = 1/d and Var[score^2] = 2 (d a - 1)(d b - 1) / (d^2 (d - 1)(d + 2)), where a and b are
    `concentration` of left and right and d is d_stream.
    """
    d = weights.d_stream
    squares, spreads = [], []
    written = [writer_factors(layer) for layer in weights.layers]
    for layer in range(1, len(weights.layers)):
        left = torch.cat(written[:layer])
        of_left = d * concentration(left) - 1
        for right in reader_factors(weights.layers[layer]):
            squares.append(_squared_scores(left, right).flatten())
            spreads.append(torch.outer(of_left, d * concentration(right.mT) - 1).flatten())
    variance = 2 * by_kind(spreads, weights).clamp(min=0) / (d**2 * (d - 1) * (d + 2))
    return Composition(by_kind(squares, weights).sqrt(), 1 / d, variance.sqrt())


@torch.no_grad()
def rotated_null(weights: CircuitWeights, n_rotations: int, generator: Generator) -> tuple[PairKind, PairKind]:
    """Mean and standard deviation of score^2 when each writer's output is turned at random, readers left as they are.

    A turned writer puts its singular values on random orthonormal directions, so only these are drawn.
    """
    d = weights.d_stream
    means, spreads = [], []
    powers = [_singular_power(writer_factors(layer)) for layer in weights.layers]
    for layer in range(1, len(weights.layers)):
        power = torch.cat(powers[:layer])
        frames = torch.randn(n_rotations, d, power.shape[1], generator=generator, dtype=torch.float64)
        frames = torch.linalg.qr(frames).Q.mT.to(power)
        for right in reader_factors(weights.layers[layer]):
            size = right.square().sum((1, 2))
            read = torch.stack([(frame @ right).square().sum(2).T for frame in frames])  # [rotation, direction, reader]
            scores = (power @ (read / size)).double().flatten(1)
            means.append(scores.mean(0))
            spreads.append(((scores - means[-1]).square().sum(0) / (n_rotations - 1)).sqrt())
    return by_kind(means, weights), by_kind(spreads, weights)


def concentration(factors: Float[Tensor, "head rank width"]) -> Float[Tensor, "head"]:
    """The concentration of singular values s, sum s^4 / (sum s^2)^2: 1 / rank where they are equal, 1 at rank 1."""
    gram = factors @ factors.mT
    return gram.square().sum((1, 2)) / factors.square().sum((1, 2)) ** 2


def _squared_scores(
    left: Float[Tensor, "writer rank d_stream"], right: Float[Tensor, "reader d_stream width"]
) -> Float[Tensor, "writer reader"]:
    product = torch.einsum("wvd,rdk->wrvk", left, right).square().sum((2, 3))
    return product / torch.outer(left.square().sum((1, 2)), right.square().sum((1, 2)))


def _singular_power(factors: Float[Tensor, "head rank d_stream"]) -> Float[Tensor, "head rank"]:
    """Squared singular values, scaled to sum to 1."""
    power = torch.linalg.svdvals(factors).square()
    return power / power.sum(1, keepdim=True)


def by_kind(parts: list[Tensor], weights: CircuitWeights) -> PairKind:
    """A table of pairs and kinds from values for Q, K and V of one reading layer after another."""
    n = len(HEAD_PORTS)
    kinds = [torch.cat([weights.W_E.new_empty(0), *parts[kind::n]]) for kind in range(n)]
    return torch.stack(kinds, dim=1).double().cpu()
