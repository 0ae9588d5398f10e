"""The circuit of a behaviour: of each prompt set, whether the model can do it, and by which heads and edges."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstream.models.clustered_errors import clustered_mean
from headstream.models.prompts.certainty import agreement, clusters_of, halves, surely_in
from headstream.models.prompts.circuits import (
    FRACTIONS,
    area,
    faithfulness,
    judge,
    mean_jaccard,
    n_edges_at,
    random_circuit,
    resampled_circuits,
    strongest,
)
from headstream.models.prompts.edge_scores import edge_scores
from headstream.models.prompts.exact_effects import exact_edge_effects, exact_node_effects
from headstream.models.prompts.graph import PromptGraph
from headstream.models.prompts.patched_runs import base_run, why_refused
from headstream.models.transformer import Transformer
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.prompts.asked_pairs import kept_pairs, log_odds, pair_rows, score_row
from headstream.tasks.prompts.kept_pairs import KeptPairs
from headstream.tasks.prompts.written_prompts import read_written
from headstream.tasks.study.analyses.prompt_circuits_config import PromptCircuitsConfig

AT_ONCE = 16  # pairs
ENOUGH_OF_IT = 0.9  # of the whole difference, that a reported circuit makes
BETWEEN = 4  # sizes that are tried between two fractions, for the smallest circuit that makes enough
_Rows = list[dict[str, Any]]


def measure_prompt_circuits(config: PromptCircuitsConfig, trained: TrainedModel) -> None:
    """Write what a model makes of each prompt set, and the circuit of those that it can do."""
    model, tokens, n_ctx = trained.model, trained.tokens, trained.model.architecture.n_ctx
    refused = why_refused(model.architecture)
    tables: dict[str, _Rows] = {}
    sets = read_written(trained.others["prompts"])
    for i, (name, candidates) in enumerate(sets.items()):
        kept = kept_pairs(name, candidates, tokens, n_ctx, config.pairs, config.seed)
        why = kept.why_refused or (f"there is no such graph of models with {refused}" if refused else None)
        found = _Set(config, model, kept).tables(
            trained, why, lambda part, i=i: trained.on_progress((i + part) / len(sets))
        )
        for table, rows in found.items():
            tables.setdefault(table, []).extend({"prompts": name, **row} for row in rows)
        trained.on_progress((i + 1) / len(sets))
    for table, rows in tables.items():
        if rows:
            trained.write(table, rows)


@dataclass(frozen=True)
class _Set:
    """A prompt set, as a model reads it."""

    config: PromptCircuitsConfig
    model: Transformer
    kept: KeptPairs

    def tables(self, trained: TrainedModel, why_not: str | None, on_progress: Any) -> dict[str, _Rows]:
        """Rows of each table about this set."""
        if why_not:
            row = {"step": trained.steps[-1], "n_pairs": len(self.kept.kept), "why_refused": why_not}
            return {"prompts": pair_rows(self.kept, None), "prompt_scores": [row]}
        clusters = clusters_of(self.kept.templates)
        scores = []
        for step in trained.steps:
            odds = log_odds(self.model if step == trained.steps[-1] else trained.at(step), self.kept)
            scores.append({"step": step} | score_row(odds, clusters))
        found: dict[str, _Rows] = {"prompts": pair_rows(self.kept, odds), "prompt_scores": scores}
        on_progress(0.1)
        if scores[-1]["can_do_it"]:
            found |= _Circuit(self.config, self.model, self.kept, odds, clusters).tables(on_progress)
        return found


@dataclass(frozen=True)
class _Circuit:
    """The circuit of a set that the model can do: found on some pairs, and judged on others."""

    config: PromptCircuitsConfig
    model: Transformer
    kept: KeptPairs
    odds: Float[Tensor, "2 pair"]
    clusters: Int[Tensor, "pair"]

    @property
    def graph(self) -> PromptGraph:
        return PromptGraph(self.model.architecture)

    def tables(self, on_progress: Any) -> dict[str, _Rows]:
        started = time.perf_counter()
        nodes = self._node_rows()
        on_progress(0.2)
        scores = self._scores()
        on_progress(0.4)
        found_on, judged_on = halves(self.clusters)
        chosen = scores[:, found_on].mean(1)
        curves, areas, n_enough = self._curves(chosen, scores, found_on, judged_on)
        on_progress(0.75)
        edges, about = self._edge_rows(scores, chosen, n_enough)
        whole = {"n_edges": self.graph.n_edges, "n_edges_enough": n_enough, **areas, **about}
        whole["seconds"] = time.perf_counter() - started
        return {"node_effects": nodes, "prompt_edges": edges, "circuit_curves": curves, "prompt_circuits": [whole]}

    def _batches(self, places: Int[Tensor, "chosen"]) -> Iterator[tuple[Tensor, Any]]:
        """Pairs at these places, some at a time, of one length each."""
        wanted = torch.zeros(len(self.clusters), dtype=torch.bool)
        wanted[places] = True
        for own, pairs in self.kept.by_length():
            here = wanted[own].nonzero()[:, 0]
            for some in here.split(AT_ONCE):
                if len(some):
                    yield own[some], pairs[some].to(self.model.W_E.device)

    def _sample(self, n: int) -> Int[Tensor, "chosen"]:
        """At most n pairs, evenly spread over all."""
        n = min(n, len(self.clusters))
        return torch.arange(n) * len(self.clusters) // n

    @property
    def whole(self) -> Float[Tensor, "pair"]:
        """The difference between the two prompts of each pair."""
        return self.odds[0] - self.odds[1]

    def _node_rows(self) -> _Rows:
        writers, sample = self.graph.writers, self._sample(self.config.exact_pairs)
        effects = torch.empty(2, len(writers), len(self.clusters), dtype=torch.float64)
        for places, pairs in self._batches(sample):
            both = exact_node_effects(base_run(self.model, pairs.clean), base_run(self.model, pairs.corrupt), pairs)
            effects[:, :, places] = torch.stack(both).double().cpu()
        noised, restored = (clustered_mean(own[:, sample], self.clusters[sample]) for own in effects)
        whole = self.whole[sample].mean()
        return [
            {
                "node": str(node),
                "effect_nats": noised.mean[i].item(),
                "effect_sem_nats": noised.sem[i].item(),
                "share": (noised.mean[i] / whole).item(),
                "restored_nats": restored.mean[i].item(),
                "restored_sem_nats": restored.sem[i].item(),
                "restored_share": (restored.mean[i] / whole).item(),
            }
            for i, node in list(enumerate(writers))[1:]
        ]

    def _scores(self) -> Float[Tensor, "edge pair"]:
        scores = torch.empty(self.graph.n_edges, len(self.clusters))
        for places, pairs in self._batches(torch.arange(len(self.clusters))):
            scores[:, places] = edge_scores(self.model, pairs, self.config.steps).float().cpu()
        return scores

    def _judged(self, places: Tensor, circuits: Sequence[Bool[Tensor, "edge"]]) -> tuple[Tensor, Tensor, Tensor]:
        """Faithfulness, KL divergence and accuracy of circuits on some pairs; those that are the same run once."""
        circuits, place = torch.stack(list(circuits)).unique(dim=0, return_inverse=True)
        odds = torch.empty(len(circuits), len(self.clusters), dtype=torch.float64)
        kl = torch.empty_like(odds)
        for own, pairs in self._batches(places):
            found = judge(self.model, pairs, list(circuits), AT_ONCE)
            odds[:, own], kl[:, own] = found.log_odds.double().cpu(), found.kl.double().cpu()
        own = odds[:, places]
        faithful = faithfulness(own, self.odds[0, places], self.odds[1, places])
        return faithful[place], kl[:, places].mean(1)[place], (own > 0).double().mean(1)[place]

    def _curves(
        self, chosen: Tensor, scores: Tensor, found_on: Tensor, judged_on: Tensor
    ) -> tuple[_Rows, dict[str, Any], int]:
        """Rows of curves; areas below them; edges of the smallest circuit that makes enough where it was found."""
        graph, generator = self.graph, torch.Generator().manual_seed(self.config.seed)
        sizes = [n_edges_at(fraction, graph) for fraction in FRACTIONS]
        rows: _Rows = []
        areas: dict[str, Any] = {}
        by_size = [strongest(chosen.abs(), n, graph) for n in sizes]
        found, _, _ = self._judged(found_on, by_size)
        n_enough = self._smallest(chosen, found, sizes, found_on)
        swapped = chosen.new_ones(len(found_on))
        swapped[torch.randperm(len(found_on), generator=generator)[: len(found_on) // 2]] = -1
        as_swapped = (scores[:, found_on] * swapped).mean(1)
        orders = {"absolute": chosen.abs(), "signed": chosen, "swapped": as_swapped.abs()}
        for order, (half, places) in product(orders, (("found", found_on), ("judged", judged_on))):
            if half == "found" and order != "absolute":
                continue
            circuits = [strongest(orders[order], n, graph) for n in sizes]
            faithful, kl, accuracy = self._judged(places, circuits)
            complete = [None] * len(sizes)
            if (order, half) == ("absolute", "judged"):
                complete = self._judged(places, [~circuit for circuit in circuits])[0].tolist()
            for i, fraction in enumerate(FRACTIONS):
                row = {"edges_by": order, "pairs": half, "fraction": fraction, "n_edges": sizes[i], "draw": 0}
                row |= {"n_connected": int(circuits[i].sum()), "faithfulness": faithful[i].item()}
                rows.append(
                    row | {"completeness": complete[i], "kl_nats": kl[i].item(), "accuracy": accuracy[i].item()}
                )
            if half == "judged":
                areas |= {
                    f"cmd_{order}": area((1 - faithful).abs(), FRACTIONS),
                    f"cpr_{order}": area(faithful, FRACTIONS),
                }
            else:
                areas["cmd_where_found"] = area((1 - faithful).abs(), FRACTIONS)
        places, of_draws = judged_on[: self.config.null_pairs], []
        for draw in range(self.config.random_circuits):
            circuits = [random_circuit(n, graph, generator) for n in sizes]
            faithful, kl, accuracy = self._judged(places, circuits)
            of_draws.append(faithful)
            for i, fraction in enumerate(FRACTIONS):
                row = {"edges_by": "random", "pairs": "judged", "fraction": fraction, "n_edges": sizes[i], "draw": draw}
                row |= {"n_connected": int(circuits[i].sum()), "faithfulness": faithful[i].item()}
                rows.append(row | {"kl_nats": kl[i].item(), "accuracy": accuracy[i].item()})
        means = torch.stack(of_draws).mean(0)
        areas |= {"cmd_random": area((1 - means).abs(), FRACTIONS), "cpr_random": area(means, FRACTIONS)}
        circuit = strongest(chosen.abs(), n_enough, graph)
        faithful, kl, accuracy = self._judged(judged_on, [circuit])
        areas |= {"n_connected_enough": int(circuit.sum()), "faithfulness_enough": faithful.item()}
        areas |= {"kl_enough_nats": kl.item(), "accuracy_enough": accuracy.item()}
        return rows, areas, n_enough

    def _smallest(self, chosen: Tensor, faithful: Tensor, sizes: Sequence[int], places: Tensor) -> int:
        """Edges of the smallest circuit tried that makes enough of the difference, to within a few sizes."""
        first = next(i for i, value in enumerate(faithful.tolist()) if value >= ENOUGH_OF_IT or i == len(sizes) - 1)
        low, high = (sizes[first - 1] if first else 0), sizes[first]
        for _ in range(BETWEEN):
            middle = (low + high) // 2
            if middle in (low, high):
                break
            makes, _, _ = self._judged(places, [strongest(chosen.abs(), middle, self.graph)])
            low, high = (low, middle) if makes.item() >= ENOUGH_OF_IT else (middle, high)
        return high

    def _edge_rows(self, scores: Tensor, chosen: Tensor, n_enough: int) -> tuple[_Rows, dict[str, Any]]:
        """Rows of edges that are in the circuit or were patched; how good their scores are, and how stable."""
        graph, config = self.graph, self.config
        generator = torch.Generator().manual_seed(config.seed + 1)
        circuit = strongest(chosen.abs(), n_enough, graph)
        drawn = torch.randperm(graph.n_edges, generator=generator)[: config.drawn_edges].tolist()
        if graph.n_edges <= config.all_edges_up_to:
            patched = list(range(graph.n_edges))
        else:
            best = chosen.abs().topk(min(config.exact_edges, graph.n_edges)).indices.tolist()
            patched = sorted({*best, *drawn})
        sample = self._sample(config.exact_pairs)
        exact = torch.empty(len(patched), len(self.clusters), dtype=torch.float64)
        for places, pairs in self._batches(sample):
            clean, corrupt = base_run(self.model, pairs.clean), base_run(self.model, pairs.corrupt)
            exact[:, places] = exact_edge_effects(clean, corrupt, pairs, patched).double().cpu()
        own_clusters = self.clusters[sample]
        sure = surely_in(exact[:, sample], self.whole[sample], own_clusters)
        of_exact = clustered_mean(exact[:, sample], own_clusters)
        of_scores = clustered_mean(scores.double(), self.clusters)
        low, high = of_exact.interval()
        again = resampled_circuits(scores, self.clusters, n_enough, config.resamples, generator)
        place_of = {edge: i for i, edge in enumerate(patched)}
        whole = self.whole[sample].mean()
        rows = []
        for edge in sorted({*patched, *circuit.nonzero()[:, 0].tolist()}):
            writer, reader, port = graph.edges[edge]
            row: dict[str, Any] = {"writer": str(writer), "reader": str(reader), "port": port}
            row |= {"score_nats": of_scores.mean[edge].item(), "score_sem_nats": of_scores.sem[edge].item()}
            row |= {"in_circuit": bool(circuit[edge]), "resampled": again[:, edge].double().mean().item()}
            if (i := place_of.get(edge)) is not None:
                row |= {"exact_nats": of_exact.mean[i].item(), "exact_sem_nats": of_exact.sem[i].item()}
                row |= {"share": (of_exact.mean[i] / whole).item(), "share_low": (low[i] / whole).item()}
                row |= {"share_high": (high[i] / whole).item(), "surely_in": bool(sure[i])}
            rows.append(row)
        compared = [edge for edge in drawn if edge in place_of]
        told = agreement(of_scores.mean[compared], of_exact.mean[[place_of[edge] for edge in compared]])
        about = {"n_surely_in": int(sure.sum()), "n_patched": len(patched), "n_drawn": len(compared)}
        about |= {f"scores_{name}": value for name, value in told._asdict().items()}
        return rows, about | {"mean_jaccard": mean_jaccard(again)}
