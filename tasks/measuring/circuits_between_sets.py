"""Circuits of two prompt sets in one model: what is lost of one behaviour without the edges of another's circuit."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstream.models.clustered_errors import clustered_mean
from headstream.models.prompts.certainty import halves
from headstream.tasks.measuring.circuit_formation import circuit_of, odds_of_circuit
from headstream.tasks.measuring.measured_pairs import MeasuredPairs

RANDOM_DRAWS = 5  # of as many edges, beside those of a circuit

_Row = dict[str, Any]


class FoundCircuit(NamedTuple):
    """A prompt set that a model can do: its pairs, and the rows of `prompt_edges` about it."""

    own: MeasuredPairs
    edges: Sequence[_Row]


def drop_rows(found: Mapping[str, FoundCircuit], seed: int) -> list[_Row]:
    """A row of `circuit_drops` for any two prompt sets, and for each with itself; none if there is but one set.

    Corrupted are the edges of one set's circuit that the other's has not; of a set with itself, its whole circuit.
    Pairs are those on which the measured set's circuit was judged.
    """
    generator = torch.Generator().manual_seed(seed)
    circuits = {name: circuit_of(each.edges, each.own.graph) for name, each in found.items()}
    rows = []
    for measured, corrupted in product(found, repeat=2) if len(found) > 1 else ():
        own, protected = found[measured].own, circuits[measured]
        if measured == corrupted:
            protected = torch.zeros_like(protected)
        removed = circuits[corrupted] & ~protected
        _, judged = halves(own.clusters)
        drop, whole = _drop(own, judged, removed), own.whole[judged].mean().item()
        mean = clustered_mean(drop, own.clusters[judged])
        low, high = mean.interval()
        at_random = [_drop(own, judged, _as_many(removed, protected, generator)) for _ in range(RANDOM_DRAWS)]
        rows.append(
            {
                "prompts": measured,
                "corrupted": corrupted,
                "n_edges": int(circuits[corrupted].sum()),
                "n_shared": int((circuits[corrupted] & circuits[measured]).sum()),
                "n_corrupted": int(removed.sum()),
                "drop_share": mean.mean.item() / whole,
                "drop_low": low.item() / whole,
                "drop_high": high.item() / whole,
                "drop_random": torch.stack(at_random).mean().item() / whole,
            }
        )
    return rows


def _drop(own: MeasuredPairs, places: Int[Tensor, "chosen"], removed: Bool[Tensor, "edge"]) -> Float[Tensor, "chosen"]:
    """By how much the log-odds fall if some edges carry what they carry at the corrupt prompt."""
    return own.odds[0, places] - odds_of_circuit(own, places, ~removed)


def _as_many(
    removed: Bool[Tensor, "edge"], protected: Bool[Tensor, "edge"], generator: torch.Generator
) -> Bool[Tensor, "edge"]:
    """As many edges, any but those that are protected."""
    chance = torch.rand(len(removed), generator=generator).masked_fill(protected, -1.0)
    drawn = torch.zeros_like(removed)
    drawn[chance.topk(int(removed.sum())).indices] = True
    return drawn
