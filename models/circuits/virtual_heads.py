"""Virtual heads: two heads in a row act as one, with pattern A2 A1 and output-value circuit OV1 OV2.

Source: Elhage et al. 2021, "virtual attention heads".
"""

from collections import defaultdict
from collections.abc import Container
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.batching import batches
from models.circuits.eigenvalues import eigenvalue_score
from models.circuits.head_factors import reader_factors, writer_factors
from models.circuits.head_weights import CircuitWeights, HeadWeights
from models.circuits.paths import Path
from models.heads.head import Head
from models.heads.patterns import pattern_statistics, visible_keys
from models.transformer import Transformer


@dataclass(frozen=True)
class VirtualCircuit:
    """Output-value circuit of a virtual head."""

    ov_norm: float  # Frobenius norm of OV1 OV2
    copying_eigenvalues: float  # -1..1: sum over sum of absolute values of the eigenvalues of W_E OV1 OV2 W_U


@dataclass(frozen=True)
class VirtualPattern:
    """Where a virtual head looks on text: means over queries, BOS left out as query and key."""

    mean_distance: float  # positions back
    confidence: float  # 0..1: largest weight of a query


@torch.no_grad()
def virtual_circuits(weights: CircuitWeights) -> dict[Path, VirtualCircuit]:
    """Output-value circuit of every pair of an earlier and a later head."""
    found: dict[Path, VirtualCircuit] = {}
    through_vocabulary = weights.W_U @ weights.W_E
    for j, later in enumerate(weights.layers):
        for i, earlier in enumerate(weights.layers[:j]):
            norms, scores = _norms(earlier, later).tolist(), _copying(earlier, later, through_vocabulary).tolist()
            for a, b in torch.cartesian_prod(torch.arange(len(norms)), torch.arange(len(later.W_Q))).tolist():
                found[Head(i, a), Head(j, b)] = VirtualCircuit(norms[a][b], scores[a][b])
    return found


@torch.inference_mode()
def virtual_patterns(
    model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int, wanted: Container[Path]
) -> dict[Path, VirtualPattern]:
    """Attention pattern of the virtual heads that the wanted pairs make."""
    sums: dict[Path, Tensor] = defaultdict(lambda: torch.zeros(3, dtype=torch.float64))
    for batch in batches(model, sequences):
        tokens = batch[:, :-1]
        patterns = [layer.pattern for layer in model.trace(tokens).layers]
        visible = visible_keys(tokens, bos, with_bos=False)
        for j, later in enumerate(patterns):
            for i, earlier in enumerate(patterns[:j]):
                for a, b in ((a, b) for a in range(earlier.shape[1]) for b in range(later.shape[1])):
                    path = Head(i, a), Head(j, b)
                    if path in wanted:
                        found = pattern_statistics(later[:, b : b + 1] @ earlier[:, a : a + 1], visible)
                        certain = found["confidence"]
                        totals = found["mean_distance"].nansum(), certain.nansum(), certain.isfinite().sum()
                        sums[path] += torch.stack([total.double() for total in totals]).cpu()
    return {path: VirtualPattern(*(total[:2] / total[2]).tolist()) for path, total in sums.items()}


def _norms(earlier: HeadWeights, later: HeadWeights) -> Float[Tensor, "first second"]:
    _, _, right = reader_factors(later)
    return torch.einsum("avd,bdw->abvw", writer_factors(earlier), right).square().sum((2, 3)).sqrt()


def _copying(
    earlier: HeadWeights, later: HeadWeights, through_vocabulary: Float[Tensor, "d_stream d_stream"]
) -> Float[Tensor, "first second"]:
    """Eigenvalues of W_E OV1 OV2 W_U are those of the same factors in another order, no larger than a head."""
    between = torch.einsum("avd,bdw->abvw", earlier.W_O, later.W_V)
    around = torch.einsum("bwd,ade->abwe", later.W_O, through_vocabulary @ earlier.W_V)
    return eigenvalue_score(torch.linalg.eigvals(between.double() @ around.double()))
