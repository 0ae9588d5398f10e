"""Virtual heads: two heads in a row act as one, with pattern A2 A1 and output-value circuit OV1 OV2.

Source: Elhage et al. 2021, "virtual attention heads".
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.circuits.eigenvalues import eigenvalue_score, eigenvalues_of
from headstream.models.circuits.head_factors import reader_factors, writer_factors
from headstream.models.circuits.head_weights import CircuitWeights
from headstream.models.circuits.paths import HeadPath
from headstream.models.heads.patterns import pattern_statistics, visible_keys
from headstream.models.nodes import Head
from headstream.models.transformer import Transformer


@dataclass(frozen=True)
class VirtualPattern:
    """The attention of a virtual head on text: means over queries, BOS left out as query and key."""

    mean_distance: float  # positions back
    confidence: float  # 0..1: largest weight of a query


@torch.no_grad()
def virtual_norms(weights: CircuitWeights) -> dict[HeadPath, float]:
    """Frobenius norm of OV1 OV2 of every pair of an earlier and a later head."""
    written = [writer_factors(layer) for layer in weights.layers]
    read = [reader_factors(layer)[2] for layer in weights.layers]
    norms: dict[HeadPath, float] = {}
    for j in range(1, len(read)):
        heads = [Head(i, head) for i in range(j) for head in range(len(written[i]))]
        products = torch.einsum("avd,bdw->abvw", torch.cat(written[:j]), read[j]).square().sum((2, 3)).sqrt()
        for first, row in zip(heads, products.tolist(), strict=True):
            norms |= {(first, Head(j, second)): norm for second, norm in enumerate(row)}
    return norms


@torch.no_grad()
def virtual_copying(weights: CircuitWeights, pairs: Sequence[HeadPath]) -> dict[HeadPath, float]:
    """Of each pair: sum over sum of absolute values of the eigenvalues of W_E OV1 OV2 W_U, -1..1.

    They are those of the same factors in another order, no larger than a head.
    """
    through_vocabulary = weights.W_U @ weights.W_E
    scores: dict[HeadPath, float] = {}
    for first, second in pairs:
        earlier, later = weights.layers[first.layer], weights.layers[second.layer]
        between = earlier.W_O[first.head] @ later.W_V[second.head]
        around = later.W_O[second.head] @ through_vocabulary @ earlier.W_V[first.head]
        scores[first, second] = eigenvalue_score(eigenvalues_of((between.double() @ around.double())[None])).item()
    return scores


@torch.inference_mode()
def virtual_patterns(
    model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int, wanted: Collection[HeadPath]
) -> dict[HeadPath, VirtualPattern]:
    """Attention pattern of the virtual heads that the wanted pairs make."""
    sums: dict[HeadPath, Tensor] = defaultdict(lambda: torch.zeros(3, dtype=torch.float64))
    for batch in batches(model, sequences):
        tokens = batch[:, :-1]
        patterns = [layer.pattern for layer in model.trace(tokens).layers]
        visible = visible_keys(tokens, bos, with_bos=False)
        for first, second in wanted:
            later, earlier = patterns[second.layer][:, second.head], patterns[first.layer][:, first.head]
            found = pattern_statistics((later @ earlier)[:, None], visible)
            certain = found["confidence"]
            totals = found["mean_distance"].nansum(), certain.nansum(), certain.isfinite().sum()
            sums[first, second] += torch.stack([total.double() for total in totals]).cpu()
    return {path: VirtualPattern(*(total[:2] / total[2]).tolist()) for path, total in sums.items()}
