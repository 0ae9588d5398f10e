"""Subspaces of the stream that heads write to and read from: their size, and how far they overlap."""

from itertools import combinations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.circuits.composition import PairKind, by_kind
from headstream.models.circuits.head_factors import reader_factors, writer_factors
from headstream.models.circuits.head_weights import CircuitWeights, HeadWeights


def ov_singular_values(heads: HeadWeights) -> Float[Tensor, "head rank"]:
    """Singular values of each head's OV matrix, W_V W_O."""
    return torch.linalg.svdvals(writer_factors(heads))


def qk_singular_values(heads: HeadWeights) -> Float[Tensor, "head rank"]:
    """Singular values of each head's QK matrix, W_Q W_K^T."""
    return torch.linalg.svdvals(reader_factors(heads)[0])


def effective_rank(singular_values: Float[Tensor, "*batch rank"]) -> Float[Tensor, "*batch"]:
    """Effective rank, exp(entropy of the normalised squared singular values), 1..rank; NaN where all are 0.

    Source: Roy & Vetterli 2007, on squared singular values.
    """
    power = singular_values.double().square()
    return torch.special.entr(power / power.sum(-1, keepdim=True)).sum(-1).exp()


def numerical_rank(singular_values: Float[Tensor, "*batch rank"], d_model: int) -> Int[Tensor, "*batch"]:
    """Count singular values that rounding can't explain: those above d_model times precision times the largest."""
    return _above_rounding(singular_values, d_model).sum(-1)


@torch.no_grad()
def overlaps(weights: CircuitWeights) -> tuple[PairKind, PairKind]:
    """Share of what a later head could read (Q, K, V) of what an earlier head could write, and the same by chance.

    The mean squared cosine of the principal angles between the two spaces, 0..1, and the larger of their dimensions
    over d_stream, which is its mean between random spaces. NaN where a head has no weights. Pairs are those of
    `head_pairs`.
    """
    found, by_chance = [], []
    spaces = [_row_space(writer_factors(layer)) for layer in weights.layers]
    for layer in range(1, len(weights.layers)):
        written, n_written = map(torch.cat, zip(*spaces[:layer], strict=True))
        for right in reader_factors(weights.layers[layer]):
            read, n_read = _row_space(right.mT)
            cosines = torch.einsum("wvd,rkd->wrvk", written, read).square().sum((2, 3))
            fewer, more = torch.minimum(n_written[:, None], n_read), torch.maximum(n_written[:, None], n_read)
            found.append((cosines / fewer).flatten())
            by_chance.append((more / weights.d_stream).where(fewer > 0, torch.nan).flatten())
    return by_kind(found, weights), by_kind(by_chance, weights)


@torch.no_grad()
def reading_overlaps(heads: HeadWeights) -> Float[Tensor, "head 3"]:
    """Overlap of the spaces that queries and keys, queries and values, keys and values of each head read."""
    spaces = [_row_space(weight.mT) for weight in (heads.W_Q, heads.W_K, heads.W_V)]
    overlap = []
    for (one, n_one), (other, n_other) in combinations(spaces, 2):
        overlap.append((one @ other.mT).square().sum((1, 2)) / torch.minimum(n_one, n_other))
    return torch.stack(overlap, dim=1)


@torch.no_grad()
def rewriting(weights: CircuitWeights) -> Float[Tensor, "pair"]:
    """The ratio of what a later head, attending fully, writes back along an earlier one's output to that output.

    tr(OV1 OV2 OV1^T) / ||OV1||^2: -1 erases it, 0 leaves it alone. Pairs are those of `head_pairs`.
    """
    returned = []
    written_by = [writer_factors(layer) for layer in weights.layers]
    for layer in range(1, len(weights.layers)):
        left, readers = torch.cat(written_by[:layer]), weights.layers[layer]
        read = torch.einsum("wvd,rdk->wrvk", left, readers.W_V)
        written = torch.einsum("wvd,rkd->wrvk", left, readers.W_O)
        returned.append(((read * written).sum((2, 3)) / left.square().sum((1, 2))[:, None]).flatten())
    return torch.cat([weights.W_E.new_empty(0), *returned])


def _above_rounding(singular_values: Tensor, d_model: int) -> Tensor:
    smallest = singular_values.amax(-1, keepdim=True) * d_model * torch.finfo(singular_values.dtype).eps
    return singular_values > smallest


def _row_space(
    factors: Float[Tensor, "head rank d_stream"],
) -> tuple[Float[Tensor, "head n d_stream"], Int[Tensor, "head"]]:
    """Orthonormal rows that span each factor's rows, 0 beyond its rank, and that rank."""
    _, singular_values, rows = torch.linalg.svd(factors, full_matrices=False)
    kept = _above_rounding(singular_values, factors.shape[2])
    return rows * kept[..., None], kept.sum(1)
