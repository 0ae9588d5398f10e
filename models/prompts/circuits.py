"""Circuits of a behaviour: the edges with the largest scores, and what a model does with these alone.

Source: Mueller et al. 2025 (MIB: sizes, CMD, CPR); Wang et al. 2022 (completeness).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstream.models.prompts.circuit_runs import logits_between
from headstream.models.prompts.graph import PromptGraph
from headstream.models.prompts.graph_sizes import FRACTIONS as FRACTIONS
from headstream.models.prompts.pairs import Pairs
from headstream.models.prompts.patched_runs import base_run, where_they_differ
from headstream.models.transformer import Transformer


class Judged(NamedTuple):
    """What runs of circuits give, one row a circuit."""

    log_odds: Float[Tensor, "circuit pair"]  # in nats
    kl: Float[Tensor, "circuit pair"]  # KL divergence of the circuit's predictions from the model's, in nats


def n_edges_at(fraction: float, graph: PromptGraph) -> int:
    """Number of edges that a fraction of all is; one at least."""
    return max(1, round(fraction * graph.n_edges))


def strongest(scores: Float[Tensor, "edge"], n: int, graph: PromptGraph) -> Bool[Tensor, "edge"]:
    """The n edges with the largest scores, less those on no path from the embedding to the logits."""
    circuit = torch.zeros(graph.n_edges, dtype=torch.bool)
    circuit[scores.topk(n).indices] = True
    return graph.connected(circuit)


def random_circuit(n: int, graph: PromptGraph, generator: torch.Generator) -> Bool[Tensor, "edge"]:
    """Any n edges, less those on no path from the embedding to the logits."""
    return strongest(torch.rand(graph.n_edges, generator=generator), n, graph)


def judge(model: Transformer, pairs: Pairs, circuits: Sequence[Bool[Tensor, "edge"]], at_once: int = 16) -> Judged:
    """Run circuits on pairs, so many pairs at a time."""
    return Judged(*(torch.cat(parts, 1) for parts in zip(*_judged(model, pairs, circuits, at_once), strict=True)))


@torch.inference_mode()
def _judged(
    model: Transformer, pairs: Pairs, circuits: Sequence[Bool[Tensor, "edge"]], at_once: int
) -> Iterator[Judged]:
    for batch in pairs.batches(at_once):
        clean, corrupt = where_they_differ(base_run(model, batch.clean), base_run(model, batch.corrupt))
        whole, log_odds, kl = clean.logits.log_softmax(-1), [], []
        for circuit in circuits:
            logits = clean.logits if circuit.all() else logits_between(corrupt, clean.embedding, circuit)
            log_odds.append(batch.log_odds(logits))
            kl.append((whole.exp() * (whole - logits.log_softmax(-1))).sum(-1))
        yield Judged(torch.stack(log_odds), torch.stack(kl))


def faithfulness(
    log_odds: Float[Tensor, "*circuits pair"], clean: Float[Tensor, "pair"], corrupt: Float[Tensor, "pair"]
) -> Float[Tensor, "*circuits"]:
    """How much of the whole difference between the prompts circuits make: a ratio of means, 1 for the whole model."""
    none = corrupt.mean()
    return (log_odds.mean(-1) - none) / (clean.mean() - none)


def area(values: Float[Tensor, "size"], fractions: Sequence[float]) -> float:
    """The area under values at fractions of all edges, by trapezoids that are linear in the fraction.

    Of |1 - f| it is the CMD, of f the CPR.
    """
    return torch.trapezoid(values, torch.tensor(fractions, dtype=values.dtype)).item()


def resampled_circuits(
    scores: Float[Tensor, "edge pair"],
    clusters: Int[Tensor, "pair"],
    n: int,
    n_resamples: int,
    generator: torch.Generator,
) -> Bool[Tensor, "resample edge"]:
    """The n edges with the largest absolute scores in each of several resamples of clusters of pairs."""
    _, place = clusters.unique(return_inverse=True)
    n_clusters = int(place.max()) + 1
    drawn = torch.randint(n_clusters, (n_resamples, n_clusters), generator=generator)
    times = torch.stack([(drawn == cluster).sum(1) for cluster in range(n_clusters)], 1)
    means = times[:, place].to(scores.dtype) @ scores.T
    chosen = torch.zeros(means.shape, dtype=torch.bool)
    return chosen.scatter_(1, means.abs().topk(n).indices, True)


def mean_jaccard(circuits: Bool[Tensor, "circuit edge"]) -> float:
    """The mean over pairs of circuits of the edges that both have over those that either has."""
    members = circuits.to(torch.float32)
    both, size = members @ members.T, members.sum(1)
    either = size[:, None] + size - both
    ratio = both / either.clamp(min=1)
    upper = torch.ones_like(ratio, dtype=torch.bool).triu(1)
    return ratio[upper].mean().item()
