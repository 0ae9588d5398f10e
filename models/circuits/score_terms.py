"""An attention score as a sum over what wrote to the query's and to the key's stream.

A score that owes to an earlier head by its query is Q-composed, by its key K-composed. Source: Elhage et al. 2021.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import nan
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.frozen import FrozenLayer, Sources, freeze_run
from headstream.models.heads.patterns import visible_keys
from headstream.models.nodes import MLP, Head, Node
from headstream.models.transformer import Transformer

Part = Literal["direct", "Q", "K", "QK", "position", "feed-forward"]
Sum = Literal["distance", "other heads", "other MLPs"]  # what a bias of distance adds; nodes that aren't told apart
TermSource = Node | Sum
DISTANCE: Sum = "distance"
OTHER_HEADS: Sum = "other heads"
OTHER_FEED_FORWARD: Sum = "other MLPs"


@dataclass(frozen=True)
class ScoreTerm:
    """One head's scores by one pair of sources."""

    head: Head
    query_source: TermSource
    key_source: TermSource
    covariance: float  # with the whole score, in squared score units
    share: float  # of the whole score's variance; sums to 1 over a head's terms, NaN where the score is constant

    @property
    def composition(self) -> Part:
        """The sides of the score, query or key, that an earlier head wrote."""
        if self.query_source == DISTANCE:
            return "position"
        if _is_feed_forward(self.query_source) or _is_feed_forward(self.key_source):
            return "feed-forward"
        by_query, by_key = _is_head(self.query_source), _is_head(self.key_source)
        return "QK" if by_query and by_key else "Q" if by_query else "K" if by_key else "direct"


@dataclass(frozen=True)
class _LayerSums:
    """Sums over queries and keys of each term of a layer's heads times the whole score."""

    sources: Sequence[Node]
    by_pair: Float[Tensor, "head query_source key_source"]
    by_distance: Float[Tensor, "head"] | None


@torch.inference_mode()
def score_terms(
    model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int, max_sources: int | None = None
) -> list[ScoreTerm]:
    """Each head's scores by query source and key source, as shares of their variance.

    Variance is taken over the keys of each query and pooled over queries: softmax doesn't see what all keys of a query
    share. BOS is neither query nor key: heads rest on it. Attention to the highest scores counts all it chooses among,
    and scores that are capped count as they were before.

    Of earlier heads and feed-forward layers, `max_sources` are told apart as sources of a head's queries, and as many
    of its keys: those with the largest share in all. The others are summed up as `other heads` and `other MLPs`.
    """
    totals: list[_LayerSums] = []
    n_pairs = [0] * len(model.layers)
    for batch in batches(model, sequences):
        tokens = batch[:, :-1]
        run = freeze_run(model, tokens)
        found = []
        for i, (layer, sources) in enumerate(zip(run.layers, run.sources(), strict=False)):
            keys = visible_keys(tokens, bos, with_bos=False, distances=layer.attention.distances)
            n_pairs[i] += int(keys.sum())
            found.append(_layer_sums(layer, sources, keys))
        totals = [_added(*layers) for layers in zip(totals, found, strict=True)] if totals else found
    return [term for i, of_layer in enumerate(totals) for term in _terms(i, of_layer, n_pairs[i], max_sources)]


def _layer_sums(layer: FrozenLayer, sources: Sources, keys: Bool[Tensor, "batch q_pos k_pos"]) -> _LayerSums:
    a, kept = layer.attention, keys[:, None]
    by_query, by_key = layer.query_and_key_sources(sources)
    position = a.position_scores(keys.shape[1])
    q, k = torch.stack(list(by_query.values())) * a.scale, torch.stack(list(by_key.values()))
    scores = (q.sum(0) @ k.sum(0).mT + position).where(kept, 0)
    mean = scores.sum(-1, keepdim=True) / kept.sum(-1, keepdim=True).clamp(min=1)
    whole = (scores - mean).where(kept, 0)  # centred in each row, so that no term needs to be
    of_queries, of_keys = (side.permute(2, 0, 1, 3, 4).flatten(2) for side in (q, whole @ k))
    by_distance = None
    if a.position_bias is not None:
        by_distance = (whole * position.masked_fill(position.isneginf(), 0)).sum((0, 2, 3)).double().cpu()
    return _LayerSums(list(by_key), (of_queries @ of_keys.mT).double().cpu(), by_distance)


def _added(one: _LayerSums, other: _LayerSums) -> _LayerSums:
    by_distance = None
    if one.by_distance is not None and other.by_distance is not None:
        by_distance = one.by_distance + other.by_distance
    return _LayerSums(one.sources, one.by_pair + other.by_pair, by_distance)


def _terms(layer: int, sums: _LayerSums, n_pairs: int, max_sources: int | None) -> Iterator[ScoreTerm]:
    """The terms of each head of a layer."""
    for head, by_pair in enumerate(sums.by_pair):
        queries, keys = (_told_apart(sums.sources, by_pair.sum(axis), max_sources) for axis in (1, 0))
        summed = _summed(_summed(by_pair, queries, 0), keys, 1).flatten().tolist()
        listed = dict(zip(product(queries, keys), summed, strict=True))
        if sums.by_distance is not None:
            listed[DISTANCE, DISTANCE] = sums.by_distance[head].item()
        variance = sum(listed.values())
        for (query, key), covariance in listed.items():
            share = covariance / variance if variance else nan
            yield ScoreTerm(Head(layer, head), query, key, covariance / max(n_pairs, 1), share)


def _told_apart(
    nodes: Sequence[Node], totals: Float[Tensor, "source"], max_sources: int | None
) -> dict[TermSource, list[int]]:
    """The sources that are reported, and the places of the nodes that each consists of."""
    by_size = totals.abs().argsort(descending=True, stable=True).tolist()
    apart = set([i for i in by_size if isinstance(nodes[i], Head | MLP)][:max_sources])
    found: dict[TermSource, list[int]] = defaultdict(list)
    for i, node in enumerate(nodes):
        source: TermSource = node
        if i not in apart and isinstance(node, Head | MLP):
            source = OTHER_HEADS if isinstance(node, Head) else OTHER_FEED_FORWARD
        found[source].append(i)
    return found


def _summed(
    values: Float[Tensor, "*shape"], places: Mapping[TermSource, list[int]], axis: int
) -> Float[Tensor, "*summed"]:
    """Values along an axis summed up by source."""
    return torch.stack([values.index_select(axis, torch.tensor(own)).sum(axis) for own in places.values()], axis)


def _is_head(source: TermSource) -> bool:
    return isinstance(source, Head) or source == OTHER_HEADS


def _is_feed_forward(source: TermSource) -> bool:
    return isinstance(source, MLP) or source == OTHER_FEED_FORWARD
