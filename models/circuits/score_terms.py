"""Where an attention score comes from: a sum over what wrote to the query's and to the key's stream.

A score that owes to an earlier head by its query is Q-composed, by its key K-composed. Source: Elhage et al. 2021.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.batching import batches
from models.circuits.frozen import FrozenLayer, Sources, freeze_run
from models.heads.head import Head
from models.heads.patterns import visible_keys
from models.transformer import Transformer

Part = Literal["direct", "Q", "K", "QK", "position", "feed-forward"]


@dataclass(frozen=True)
class ScoreTerm:
    """One head's scores by one pair of sources, named as in `FrozenRun.sources`; a bias of distance is `distance`."""

    head: Head
    query_source: str
    key_source: str
    covariance: float  # with the whole score, in squared score units
    share: float  # of the whole score's variance; sums to 1 over a head's terms, NaN where the score is constant

    @property
    def composition(self) -> Part:
        """Which sides of the score, query or key, an earlier head wrote."""
        if self.query_source == "distance":
            return "position"
        if "MLP" in self.query_source + self.key_source:
            return "feed-forward"
        by_query, by_key = (source.startswith("L") for source in (self.query_source, self.key_source))
        return "QK" if by_query and by_key else "Q" if by_query else "K" if by_key else "direct"


@torch.inference_mode()
def score_terms(model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int) -> list[ScoreTerm]:
    """Each head's scores by query source and key source, as shares of their variance.

    Variance is taken over the keys of each query and pooled over queries: softmax doesn't see what all keys of a query
    share. BOS is neither query nor key: heads rest on it. Attention to the highest scores counts all it chooses among.
    """
    covariances: dict[tuple[int, str, str], Tensor] = defaultdict(lambda: torch.zeros((), dtype=torch.float64))
    n_pairs = 0
    for batch in batches(model, sequences):
        tokens = batch[:, :-1]
        keys = visible_keys(tokens, bos, with_bos=False, distances=model.architecture.visible_distances)
        run = freeze_run(model, tokens)
        n_pairs += int(keys.sum())
        for i, (layer, sources) in enumerate(zip(run.layers, run.sources(), strict=False)):
            for pair, covariance in _layer_covariances(layer, sources, keys).items():
                covariances[i, *pair] = covariances[i, *pair] + covariance.double()
    variance: dict[int, Tensor | float] = defaultdict(float)
    for (i, _, _), covariance in covariances.items():
        variance[i] = variance[i] + covariance
    return [
        ScoreTerm(Head(i, head), query, key, value / max(n_pairs, 1), share)
        for (i, query, key), covariance in covariances.items()
        for head, (value, share) in enumerate(
            zip(covariance.tolist(), (covariance / variance[i]).tolist(), strict=True)
        )
    ]


def _layer_covariances(
    layer: FrozenLayer, sources: Sources, keys: Bool[Tensor, "batch q_pos k_pos"]
) -> dict[tuple[str, str], Float[Tensor, "head"]]:
    """Sum over queries and keys of each term times the whole score."""
    a, kept = layer.attention, keys[:, None]
    by_query, by_key = layer.query_and_key_sources(sources)
    position = a.position_scores(keys.shape[1])
    q, k = torch.stack(list(by_query.values())) * a.d_head**-0.5, torch.stack(list(by_key.values()))
    scores = (q.sum(0) @ k.sum(0).mT + position).where(kept, 0)
    mean = scores.sum(-1, keepdim=True) / kept.sum(-1, keepdim=True).clamp(min=1)
    whole = (scores - mean).where(kept, 0)  # centred in each row, so that no term needs to be
    covariances: dict[tuple[str, str], Tensor] = {}
    for key_source, part in zip(by_key, k, strict=True):
        per_query = torch.einsum("sbhqd,bhqd->sh", q, whole @ part)
        covariances |= {(name, key_source): row for name, row in zip(by_query, per_query, strict=True)}
    if a.position_bias is not None:
        covariances["distance", "distance"] = (whole * position.masked_fill(position.isneginf(), 0)).sum((0, 2, 3))
    return covariances
