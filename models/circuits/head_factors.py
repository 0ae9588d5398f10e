"""Factors as thin as a head of what it writes and reads: all that norms, singular values and subspaces depend on."""

import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.circuits.head_weights import HeadWeights


def writer_factors(heads: HeadWeights) -> Float[Tensor, "head rank d_stream"]:
    """Factor what each head writes, whatever it reads: L with L^T L = OV^T OV."""
    return _triangular(heads.W_V) @ heads.W_O


def reader_factors(
    heads: HeadWeights,
) -> tuple[
    Float[Tensor, "head d_stream rank"], Float[Tensor, "head d_stream rank"], Float[Tensor, "head d_stream rank_v"]
]:
    """Factor what each head reads by its queries, keys and values: R with R R^T = QK QK^T, QK^T QK and OV OV^T."""
    return (
        heads.W_Q @ _triangular(heads.W_K).mT,
        heads.W_K @ _triangular(heads.W_Q).mT,
        heads.W_V @ _triangular(heads.W_O.mT).mT,
    )


def _triangular(matrices: Float[Tensor, "head rows columns"]) -> Float[Tensor, "head rank columns"]:
    """The matrices turned on the side of their rows until they are triangular."""
    return torch.linalg.qr(matrices, mode="r").R
