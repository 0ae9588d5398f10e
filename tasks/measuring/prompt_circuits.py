"""The circuit of a behaviour: of each prompt set, whether the model can do it, and by which heads and edges."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from headstream.models.prompts.certainty import clusters_of
from headstream.models.prompts.edge_scores import edge_scores
from headstream.models.prompts.patched_runs import why_refused
from headstream.tasks.measuring.circuit_search import CircuitSearch
from headstream.tasks.measuring.followed_circuits import formation_tables
from headstream.tasks.measuring.measured_pairs import MeasuredPairs
from headstream.tasks.measuring.patched_effects import edge_rows, node_rows
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.prompts.asked_pairs import kept_pairs, log_odds, pair_rows, score_row
from headstream.tasks.prompts.kept_pairs import KeptPairs
from headstream.tasks.prompts.written_prompts import read_written
from headstream.tasks.study.analyses.prompt_circuits_config import PromptCircuitsConfig

_Rows = list[dict[str, Any]]
_Progress = Callable[[float], None]

# Parts of the time that have passed, roughly: when it is known whether a model can do it, and when its last checkpoint
# is measured; and of that when nodes, scores of edges, and curves are done.
_KNOWN, _MEASURED = 0.02, 0.5
_NODES, _SCORES, _CURVES = 0.3, 0.5, 0.85


def measure_prompt_circuits(config: PromptCircuitsConfig, trained: TrainedModel) -> None:
    """Write what a model makes of each prompt set, and the circuit of those that it can do."""
    architecture = trained.model.architecture
    refused = why_refused(architecture)
    tables: dict[str, _Rows] = {}
    sets = read_written(trained.others["prompts"])
    for i, (name, candidates) in enumerate(sets.items()):
        kept = kept_pairs(name, candidates, trained.tokens, architecture.n_ctx, config.pairs, config.seed)
        why = kept.why_refused or (f"there is no such graph of models with {refused}" if refused else None)

        def heard(part: float, before: int = i) -> None:
            trained.on_progress((before + part) / len(sets))

        found = _tables(config, trained, kept, why, heard)
        for table, rows in found.items():
            tables.setdefault(table, []).extend({"prompts": name, **row} for row in rows)
        trained.on_progress((i + 1) / len(sets))
    for table, rows in tables.items():
        if rows:
            trained.write(table, rows)


def _tables(
    config: PromptCircuitsConfig, trained: TrainedModel, kept: KeptPairs, why_not: str | None, on_progress: _Progress
) -> dict[str, _Rows]:
    """Rows of each table about one set: what the model makes of it and, if it can do it, its circuit."""
    if why_not:
        row = {"step": trained.steps[-1], "n_pairs": len(kept.kept), "why_refused": why_not}
        return {"prompts": pair_rows(kept, None), "prompt_scores": [row]}
    clusters, every, scores = clusters_of(kept.templates), dict[int, Tensor](), list[dict[str, Any]]()
    for step in trained.steps:
        odds = every[step] = log_odds(trained.model if step == trained.steps[-1] else trained.at(step), kept)
        scores.append({"step": step} | score_row(odds, clusters))
    found: dict[str, _Rows] = {"prompts": pair_rows(kept, odds), "prompt_scores": scores}
    on_progress(_KNOWN)
    if scores[-1]["can_do_it"]:
        own = MeasuredPairs(trained.model, kept, odds, clusters, trained.threads, on_progress)
        last = 1.0 if len(trained.steps) == 1 else _MEASURED
        found |= _circuit_tables(config, own.of_part(_KNOWN, last))
        found |= formation_tables(config, own.of_part(last, 1.0), found["prompt_edges"], every, trained.at)
    return found


def _circuit_tables(config: PromptCircuitsConfig, own: MeasuredPairs) -> dict[str, _Rows]:
    """Rows about the circuit of a set that the model can do."""
    started = time.perf_counter()
    nodes = node_rows(own.of_part(0.0, _NODES), config.exact_pairs)
    scores, scored = torch.empty(own.graph.n_edges, len(own.clusters)), own.of_part(_NODES, _SCORES)
    for places, found in scored.on_batches(own.every, lambda pairs: edge_scores(own.model, pairs, config.steps)):
        scores[:, places] = found.float().cpu()
    search = CircuitSearch(own.of_part(_SCORES, _CURVES), config, scores)
    curves, areas = search.found()
    exact = own.of_part(_CURVES, 1.0)
    edges, about = edge_rows(exact, config, scores, search.strength, areas["n_edges_enough"])
    whole = {"n_edges": own.graph.n_edges, **areas, **about, "seconds": time.perf_counter() - started}
    return {"node_effects": nodes, "prompt_edges": edges, "circuit_curves": curves, "prompt_circuits": [whole]}
