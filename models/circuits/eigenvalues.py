"""Eigenvalues of full circuits: positive ones map a token to itself (copying, matching), negative ones away from it.

A [d_vocab, d_vocab] product of factors has the non-zero eigenvalues of the same factors multiplied the other way round,
which is no larger than a head. Source: Elhage et al. 2021, "copying and matching".
"""

import numpy as np
import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from headstream.models.circuits.head_weights import CircuitWeights


def eigenvalue_score(eigenvalues: Complex[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """Sum of eigenvalues over the sum of their sizes, -1..1; NaN where all are 0. Above 0 proves nothing by itself."""
    return eigenvalues.sum(-1).real / eigenvalues.abs().sum(-1)


@torch.no_grad()
def copying_eigenvalues(weights: CircuitWeights) -> list[Complex[Tensor, "head d_value"]]:
    """Eigenvalues of each head's full OV circuit W_E OV W_U, as those of W_O (W_U W_E) W_V: a tensor a layer."""
    through_vocabulary = (weights.W_U @ weights.W_E).double()
    return [eigenvalues_of(own.W_O.double() @ through_vocabulary @ own.W_V.double()) for own in weights.layers]


@torch.no_grad()
def matching_eigenvalues(weights: CircuitWeights) -> list[Complex[Tensor, "head d_head"]]:
    """Eigenvalues of each head's full QK circuit W_E QK W_E^T, as those of W_K^T (W_E^T W_E) W_Q: a tensor a layer."""
    token_gram = (weights.W_E.T @ weights.W_E).double()
    return [eigenvalues_of(own.W_K.double().mT @ token_gram @ own.W_Q.double()) for own in weights.layers]


@torch.no_grad()
def composed_matching_eigenvalues(
    weights: CircuitWeights, pairs: Int[Tensor, "pair 4"]
) -> Complex[Tensor, "pair d_head"]:
    """Eigenvalues of the QK circuit whose keys an earlier head wrote, W_E QK2 OV1^T W_E^T: a row a pair.

    Through a previous-token head, positive ones look for the token that the query has: the sign of induction. Pairs are
    rows of `head_pairs`.
    """
    token_gram = (weights.W_E.T @ weights.W_E).double()
    d_head = weights.layers[0].W_Q.shape[2] if weights.layers else 0
    circuits = [torch.empty(0, d_head, d_head, dtype=token_gram.dtype, device=token_gram.device)]
    for writer_layer, writer, reader_layer, reader in pairs.tolist():
        earlier, later = weights.layers[writer_layer], weights.layers[reader_layer]
        keys = earlier.W_O[writer].double() @ later.W_K[reader].double()
        queries = earlier.W_V[writer].double().T @ token_gram @ later.W_Q[reader].double()
        circuits.append((keys.T @ queries)[None])
    return eigenvalues_of(torch.cat(circuits))


def eigenvalues_of(matrices: Float[Tensor, "batch n n"]) -> Complex[Tensor, "batch n"]:
    """Eigenvalues, the largest in absolute value first.

    By NumPy: torch's own LAPACK gives up on some matrices with many equal eigenvalues, such as rotated permutations.
    """
    found = np.linalg.eigvals(matrices.cpu().numpy()).astype(np.complex128)
    eigenvalues = torch.from_numpy(found)
    return eigenvalues.gather(-1, eigenvalues.abs().argsort(dim=-1, descending=True, stable=True))
