"""The Jensen-Shannon distance between two heads' patterns.

For rows P and Q it is the square root of the Jensen-Shannon divergence H((P + Q) / 2) - (H(P) + H(Q)) / 2, entropies in
bits: 0 (same)..1 (no key in common), and a metric. Source: Endres & Schindelin 2003.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.transformer import Transformer


@torch.inference_mode()
def pattern_distances(model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int) -> Float[Tensor, "head head"]:
    """Mean distance over queries between the patterns of any two heads; BOS doesn't count as a query."""
    sums, n_queries = [], 0
    for batch in batches(model, sequences):
        tokens = batch[:, :-1]
        patterns = torch.cat([layer.pattern for layer in model.trace(tokens).layers], dim=1)
        rows = patterns.transpose(1, 2)[tokens != bos].transpose(0, 1).double()
        sums.append(jensen_shannon_distances(rows / rows.sum(-1, keepdim=True)).sum(-1).cpu())
        n_queries += rows.shape[1]
    upper = torch.stack(sums).sum(0).triu()
    return (upper + upper.T) / n_queries


@torch.inference_mode()
def sampled_patterns(
    model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int, n_queries: int
) -> tuple[Int[Tensor, "query 2"], Float[Tensor, "head query key"]]:
    """Random queries other than BOS, as sequence and position, and every head's attention at each.

    The queries are the same for all models that are shown the same sequences.
    """
    places = (sequences[:, :-1] != bos).nonzero()
    drawn = torch.randperm(len(places), generator=torch.Generator().manual_seed(0))[:n_queries]
    queries, patterns, start = places[drawn.sort().values], [], 0
    for batch in batches(model, sequences):
        of_batch = torch.cat([layer.pattern for layer in model.trace(batch[:, :-1]).layers], dim=1)
        sequence, position = queries[(queries[:, 0] >= start) & (queries[:, 0] < start + len(batch))].T
        patterns.append(of_batch.transpose(1, 2)[sequence - start, position].cpu())
        start += len(batch)
    return queries, torch.cat(patterns).transpose(0, 1)


def jensen_shannon_distances(rows: Float[Tensor, "head query key"]) -> Float[Tensor, "head head query"]:
    """Distance between the rows of any two heads, query by query; only one head's pairs are held at a time."""
    n_heads, n_queries, _ = rows.shape
    entropy = _entropy(rows)
    distances = rows.new_zeros(n_heads, n_heads, n_queries)
    for head in range(n_heads - 1):
        later = slice(head + 1, n_heads)
        divergence = _entropy((rows[head] + rows[later]) / 2) - (entropy[head] + entropy[later]) / 2
        distances[head, later] = distances[later, head] = divergence.clamp(0, 1).sqrt()
    return distances


def _entropy(rows: Float[Tensor, "*batch key"]) -> Float[Tensor, "*batch"]:
    """Entropy of each row, in bits."""
    return torch.special.entr(rows).sum(-1) / math.log(2)
