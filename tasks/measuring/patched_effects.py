"""Effects of nodes and edges on a behaviour, patched one by one, and how far first-order scores tell them."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.clustered_errors import ClusteredMean, clustered_mean
from headstream.models.nodes import Head, Node
from headstream.models.prompts.certainty import agreement, surely_in
from headstream.models.prompts.circuits import mean_jaccard, resampled_circuits, strongest
from headstream.models.prompts.exact_effects import exact_edge_effects, exact_node_effects
from headstream.models.prompts.head_looks import LOOKED_AT, head_looks
from headstream.models.prompts.pairs import Pairs
from headstream.models.prompts.patched_runs import base_run
from headstream.tasks.measuring.measured_pairs import MeasuredPairs
from headstream.tasks.study.analyses.prompt_circuits_config import PromptCircuitsConfig

_Row = dict[str, Any]


def node_rows(own: MeasuredPairs, n_pairs: int) -> list[_Row]:
    """A row for each head and feed-forward layer: its exact effect, patched both ways, on at most so many pairs."""
    writers, sample = own.graph.writers, own.sample(n_pairs)
    effects = torch.empty(2, len(writers), len(own.clusters), dtype=torch.float64)

    def patched(pairs: Pairs) -> Tensor:
        both = exact_node_effects(base_run(own.model, pairs.clean), base_run(own.model, pairs.corrupt), pairs)
        return torch.stack(both).double().cpu()

    for places, found in own.of_part(0.0, 0.95).on_batches(sample, patched):
        effects[:, :, places] = found
    noised, restored = (clustered_mean(each[:, sample], own.clusters[sample]) for each in effects)
    whole, looks = own.whole[sample].mean(), _look_columns(own.of_part(0.95, 1.0), sample)
    return [
        {
            "node": str(node),
            "effect_nats": noised.mean[i].item(),
            "effect_sem_nats": noised.sem[i].item(),
            "share": (noised.mean[i] / whole).item(),
            "restored_nats": restored.mean[i].item(),
            "restored_sem_nats": restored.sem[i].item(),
            "restored_share": (restored.mean[i] / whole).item(),
            **looks.get(node, {}),
        }
        for i, node in list(enumerate(writers))[1:]
    ]


def _look_columns(own: MeasuredPairs, sample: Int[Tensor, "chosen"]) -> dict[Node, _Row]:
    """Of each head: from where it looks at what in most pairs, and what it writes on the answer directly."""
    heads = [node for node in own.graph.writers if isinstance(node, Head)]
    query, key = (torch.zeros(len(heads), len(own.clusters), dtype=torch.long) for _ in "12")
    attention, direct = (torch.zeros(len(heads), len(own.clusters), dtype=torch.float64) for _ in "12")
    for places, found in own.on_batches(sample, lambda pairs: head_looks(own.model, pairs)) if heads else ():
        for kept, part in zip((query, key, attention, direct), found, strict=True):
            kept[:, places] = part.to(kept)
    written, columns = clustered_mean(direct[:, sample], own.clusters[sample]), dict[Node, _Row]()
    for i, head in enumerate(heads):
        looks = torch.stack([query[i, sample], key[i, sample]], 1)
        kinds, which, times = looks.unique(dim=0, return_inverse=True, return_counts=True)
        most = int(times.argmax())
        seen_from, seen = (LOOKED_AT[place] for place in kinds[most].tolist())
        columns[head] = {
            "looks_from": seen_from,
            "looks_at": seen,
            "looks_share": times[most].item() / len(sample),
            "looks_attention": attention[i, sample][which == most].mean().item(),
            "direct_nats": written.mean[i].item(),
            "direct_sem_nats": written.sem[i].item(),
        }
    return columns


def edge_rows(
    own: MeasuredPairs,
    config: PromptCircuitsConfig,
    scores: Float[Tensor, "edge pair"],
    strength: Float[Tensor, "edge"],
    n_enough: int,
) -> tuple[list[_Row], _Row]:
    """Rows of edges that are in the circuit or were patched; and how good their scores are, and how stable.

    The circuit is that of the `n_enough` strongest edges. Patched are all edges of a small model, else the strongest,
    and some that are drawn at random.
    """
    circuit = strongest(strength, n_enough, own.graph)
    generator = torch.Generator().manual_seed(config.seed + 1)
    n_edges = own.graph.n_edges
    drawn = torch.randperm(n_edges, generator=generator)[: config.drawn_edges].tolist()
    best = strength.topk(min(config.exact_edges, n_edges)).indices.tolist()
    patched = list(range(n_edges)) if n_edges <= config.all_edges_up_to else sorted({*best, *drawn})
    sample = own.sample(config.exact_pairs)
    exact = _patched(own, sample, patched)
    sure = surely_in(exact, own.whole[sample], own.clusters[sample])
    of_exact = clustered_mean(exact, own.clusters[sample])
    of_scores = clustered_mean(scores.double(), own.clusters)
    again = resampled_circuits(scores, own.clusters, n_enough, config.resamples, generator)
    place_of = {edge: i for i, edge in enumerate(patched)}
    whole, rows = own.whole[sample].mean().item(), list[_Row]()
    for edge in sorted({*patched, *circuit.nonzero()[:, 0].tolist()}):
        writer, reader, port = own.graph.edges[edge]
        row: _Row = {"writer": str(writer), "reader": str(reader), "port": port}
        row |= {"score_nats": of_scores.mean[edge].item(), "score_sem_nats": of_scores.sem[edge].item()}
        row |= {"in_circuit": bool(circuit[edge]), "resampled": again[:, edge].double().mean().item()}
        if (i := place_of.get(edge)) is not None:
            row |= _exact_columns(of_exact, whole, i) | {"surely_in": bool(sure[i])}
        rows.append(row)
    compared = [edge for edge in drawn if edge in place_of]
    told = agreement(of_scores.mean[compared], of_exact.mean[[place_of[edge] for edge in compared]])
    about: _Row = {"n_surely_in": int(sure.sum()), "n_patched": len(patched), "n_drawn": len(compared)}
    about |= {f"scores_{name}": value for name, value in told._asdict().items()}
    return rows, about | {"mean_jaccard": mean_jaccard(again)}


def _patched(own: MeasuredPairs, sample: Tensor, edges: list[int]) -> Float[Tensor, "chosen pair"]:
    exact = torch.empty(len(edges), len(own.clusters), dtype=torch.float64)

    def patched(pairs: Pairs) -> Tensor:
        clean, corrupt = base_run(own.model, pairs.clean), base_run(own.model, pairs.corrupt)
        return exact_edge_effects(clean, corrupt, pairs, edges).double().cpu()

    for places, found in own.on_batches(sample, patched):
        exact[:, places] = found
    return exact[:, sample]


def _exact_columns(of_exact: ClusteredMean, whole: float, i: int) -> _Row:
    low, high = of_exact.interval()
    return {
        "exact_nats": of_exact.mean[i].item(),
        "exact_sem_nats": of_exact.sem[i].item(),
        "share": of_exact.mean[i].item() / whole,
        "share_low": low[i].item() / whole,
        "share_high": high[i].item() / whole,
    }
