"""The formation of a circuit: what the edges of the last checkpoint's circuit do at earlier checkpoints."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstream.models.clustered_errors import clustered_mean
from headstream.models.prompts.certainty import halves
from headstream.models.prompts.circuits import judge
from headstream.models.prompts.edge_scores import edge_scores
from headstream.models.prompts.graph import PromptGraph
from headstream.models.transformer import Transformer
from headstream.tasks.measuring.measured_pairs import MeasuredPairs
from headstream.tasks.prompts.asked_pairs import PAIRS_AT_ONCE
from headstream.tasks.study.analyses.prompt_circuits_config import PromptCircuitsConfig

MOST_FOLLOWED = 50  # edges whose scores are followed: those with the largest at the last checkpoint

_Row = dict[str, Any]


def formation_tables(
    config: PromptCircuitsConfig,
    own: MeasuredPairs,
    edges: Sequence[_Row],
    odds: Mapping[int, Float[Tensor, "2 pair"]],
    at: Callable[[int], Transformer],
) -> dict[str, list[_Row]]:
    """Rows of `circuit_checkpoints` and `edge_checkpoints`, at most `config.checkpoints` of each circuit and edge.

    `edges` are the rows of `prompt_edges`; `odds` are the log-odds at every checkpoint, by step, and `at` gives the
    model there. A model with one checkpoint has no rows.
    """
    differences = {step: (clean - corrupt).mean().item() for step, (clean, corrupt) in odds.items()}
    chosen = checkpoints_followed(differences, config.checkpoints)
    if len(chosen) < 2:
        return {}
    graph, circuit = own.graph, circuit_of(edges, own.graph)
    followed = [row for row in edges if row["in_circuit"] or row.get("surely_in")]
    followed = sorted(followed, key=lambda row: -abs(row["score_nats"]))[:MOST_FOLLOWED]
    place = {(str(writer), str(reader), port): i for i, (writer, reader, port) in enumerate(graph.edges)}
    names = [{name: row[name] for name in ("writer", "reader", "port")} for row in followed]
    places = [place[tuple(name.values())] for name in names]
    tables: dict[str, list[_Row]] = {"circuit_checkpoints": [], "edge_checkpoints": []}
    for i, step in enumerate(chosen):
        there = replace(own, model=own.model if step == chosen[-1] else at(step), odds=odds[step])
        tables["circuit_checkpoints"].append({"step": step} | _circuit_columns(there, circuit))
        scores = _scores(there, own.sample(config.exact_pairs), config.steps)[places].tolist()
        scored = zip(names, scores, strict=True)
        tables["edge_checkpoints"] += [{"step": step, **name, "score_nats": score} for name, score in scored]
        own.on_progress((i + 1) / len(chosen))
    return tables


def checkpoints_followed(differences: Mapping[int, float], most: int) -> list[int]:
    """At most so many steps: the first, the last, and those at which the difference between prompts changes most.

    Both ends of the largest changes are taken, so that what is passed there is passed between neighbours.
    """
    steps = sorted(differences)
    if most < 2 or len(steps) < 2:
        return []
    changes = [abs(differences[after] - differences[before]) for before, after in pairwise(steps)]
    beside = dict(zip(steps[1:-1], map(max, pairwise(changes)), strict=True))
    largest = sorted(beside, key=lambda step: -beside[step])[: most - 2]
    return sorted({steps[0], steps[-1], *largest})


def circuit_of(edges: Sequence[_Row], graph: PromptGraph) -> Bool[Tensor, "edge"]:
    """The edges that rows of `prompt_edges` say to be in the circuit."""
    named = {(row["writer"], row["reader"], row["port"]) for row in edges if row["in_circuit"]}
    return torch.tensor([(str(writer), str(reader), port) in named for writer, reader, port in graph.edges])


def odds_of_circuit(
    own: MeasuredPairs, places: Int[Tensor, "chosen"], circuit: Bool[Tensor, "edge"]
) -> Float[Tensor, "chosen"]:
    """Log-odds of the answers that a circuit gives at some pairs, in nats."""
    odds = torch.empty(len(own.clusters), dtype=torch.float64)
    for some, pairs in own.batches(places):
        odds[some] = judge(own.model, pairs, [circuit], PAIRS_AT_ONCE).log_odds[0].double().cpu()
    return odds[places]


def _circuit_columns(own: MeasuredPairs, circuit: Bool[Tensor, "edge"]) -> _Row:
    """How much the model prefers the answers at one prompt to the other, and how much of that a circuit makes."""
    _, judged = halves(own.clusters)
    makes = odds_of_circuit(own, judged, circuit) - own.odds[1, judged]
    whole, part = (clustered_mean(values, own.clusters[judged]) for values in (own.whole[judged], makes))
    low, high = part.interval()
    return {
        "difference_nats": whole.mean.item(),
        "circuit_nats": part.mean.item(),
        "circuit_low_nats": low.item(),
        "circuit_high_nats": high.item(),
    }


def _scores(own: MeasuredPairs, sample: Int[Tensor, "chosen"], n_points: int) -> Float[Tensor, "edge"]:
    """The mean score of each edge on some pairs."""
    total = torch.zeros(own.graph.n_edges, dtype=torch.float64)
    for _, pairs in own.batches(sample):
        total += edge_scores(own.model, pairs, n_points).double().sum(1).cpu()
    return total / len(sample)
