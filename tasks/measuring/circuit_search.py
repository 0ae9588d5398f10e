"""Circuits of a behaviour by size: those with the largest scores, beside random ones and exchanged answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstream.models.prompts.certainty import halves
from headstream.models.prompts.circuits import (
    FRACTIONS,
    area,
    faithfulness,
    judge,
    n_edges_at,
    random_circuit,
    strongest,
)
from headstream.tasks.measuring.measured_pairs import MeasuredPairs
from headstream.tasks.prompts.asked_pairs import PAIRS_AT_ONCE
from headstream.tasks.study.analyses.prompt_circuits_config import PromptCircuitsConfig

ENOUGH_OF_IT = 0.9  # of the whole difference, that a reported circuit makes
BETWEEN = 4  # sizes that are tried between two fractions, for the smallest circuit that makes enough

_Circuits = Sequence[Bool[Tensor, "edge"]]
_Found = dict[str, Any]


@dataclass(frozen=True)
class CircuitSearch:
    """Circuits found on one half of the pairs, and judged on the other."""

    own: MeasuredPairs
    config: PromptCircuitsConfig
    scores: Float[Tensor, "edge pair"]

    @property
    def strength(self) -> Float[Tensor, "edge"]:
        """The mean score of each edge on the pairs on which circuits are found, whatever its sign."""
        return self.scores[:, self._halves[0]].mean(1).abs()

    def found(self) -> tuple[list[_Found], _Found]:
        """Rows of circuits of every size; areas below their curves, and the smallest circuit that makes enough."""
        generator = torch.Generator().manual_seed(self.config.seed)
        found_on, judged_on = self._halves
        orders = self._orders(generator)
        rows, faithful = self._curve(orders["absolute"], found_on, {"edges_by": "absolute", "pairs": "found"})
        areas: _Found = {"cmd_where_found": area((1 - faithful).abs(), FRACTIONS)}
        n_enough = self._smallest(faithful)
        circuit = strongest(self.strength, n_enough, self.own.graph)
        for order, strength in orders.items():
            about = {"edges_by": order, "pairs": "judged"}
            own, faithful = self._curve(strength, judged_on, about, complete=order == "absolute")
            rows += own
            areas |= _areas(order, faithful)
        own, faithful = self._random_curves(judged_on[: self.config.null_pairs], generator)
        areas |= _areas("random", faithful)
        (of_circuit,), kl, accuracy = self._judged(judged_on, [circuit])
        areas |= {"n_edges_enough": n_enough, "n_connected_enough": int(circuit.sum())}
        areas |= {
            "faithfulness_enough": of_circuit.item(),
            "kl_enough_nats": kl.item(),
            "accuracy_enough": accuracy.item(),
        }
        return [*rows, *own], areas

    @property
    def _halves(self) -> tuple[Tensor, Tensor]:
        return halves(self.own.clusters)

    @property
    def _sizes(self) -> list[int]:
        return [n_edges_at(fraction, self.own.graph) for fraction in FRACTIONS]

    def _orders(self, generator: torch.Generator) -> dict[str, Float[Tensor, "edge"]]:
        """By what edges are chosen; exchanged answers change the sign of a pair's scores, in half of the pairs."""
        scores = self.scores[:, self._halves[0]]
        n = scores.shape[1]
        sign = scores.new_ones(n)
        sign[torch.randperm(n, generator=generator)[: n // 2]] = -1
        return {
            "absolute": self.strength, "signed": scores.mean(1), "swapped": (scores * sign).mean(1).abs(),
        }  # fmt: skip

    def _curve(
        self, strength: Tensor, places: Tensor, about: _Found, *, complete: bool = False
    ) -> tuple[list[_Found], Float[Tensor, "size"]]:
        circuits = [strongest(strength, n, self.own.graph) for n in self._sizes]
        without = self._judged(places, [~circuit for circuit in circuits])[0].tolist() if complete else None
        return self._rows(circuits, places, about | {"draw": 0}, without)

    def _random_curves(self, places: Tensor, generator: torch.Generator) -> tuple[list[_Found], Float[Tensor, "size"]]:
        rows, faithful = list[_Found](), []
        for draw in range(self.config.random_circuits):
            circuits = [random_circuit(n, self.own.graph, generator) for n in self._sizes]
            own, of_draw = self._rows(circuits, places, {"edges_by": "random", "pairs": "judged", "draw": draw})
            rows += own
            faithful.append(of_draw)
        return rows, torch.stack(faithful).mean(0)

    def _rows(
        self, circuits: _Circuits, places: Tensor, about: _Found, without: Sequence[float] | None = None
    ) -> tuple[list[_Found], Float[Tensor, "size"]]:
        """A row for each circuit, by size, and their faithfulness."""
        faithful, kl, accuracy = self._judged(places, circuits)
        rows = [
            {
                **about,
                "fraction": fraction,
                "n_edges": n,
                "n_connected": int(circuits[i].sum()),
                "faithfulness": faithful[i].item(),
                "completeness": without[i] if without else None,
                "kl_nats": kl[i].item(),
                "accuracy": accuracy[i].item(),
            }
            for i, (fraction, n) in enumerate(zip(FRACTIONS, self._sizes, strict=True))
        ]
        return rows, faithful

    def _judged(self, places: Tensor, circuits: _Circuits) -> tuple[Tensor, Tensor, Tensor]:
        """Faithfulness, KL divergence and accuracy of circuits on some pairs; those that are the same run once."""
        distinct, place = torch.stack(list(circuits)).unique(dim=0, return_inverse=True)
        odds = torch.empty(len(distinct), len(self.own.clusters), dtype=torch.float64)
        kl = torch.empty_like(odds)
        for own, pairs in self.own.batches(places):
            found = judge(self.own.model, pairs, list(distinct), PAIRS_AT_ONCE)
            odds[:, own], kl[:, own] = found.log_odds.double().cpu(), found.kl.double().cpu()
        own = odds[:, places]
        faithful = faithfulness(own, self.own.odds[0, places], self.own.odds[1, places])
        return faithful[place], kl[:, places].mean(1)[place], (own > 0).double().mean(1)[place]

    def _smallest(self, faithful: Float[Tensor, "size"]) -> int:
        """Edges of the smallest circuit tried that makes enough where it was found, to within a few sizes."""
        sizes, graph = self._sizes, self.own.graph
        first = next(i for i, value in enumerate(faithful.tolist()) if value >= ENOUGH_OF_IT or i == len(sizes) - 1)
        low, high = (sizes[first - 1] if first else 0), sizes[first]
        for _ in range(BETWEEN):
            middle = (low + high) // 2
            if middle in (low, high):
                break
            makes, _, _ = self._judged(self._halves[0], [strongest(self.strength, middle, graph)])
            low, high = (low, middle) if makes.item() >= ENOUGH_OF_IT else (middle, high)
        return high


def _areas(order: str, faithful: Float[Tensor, "size"]) -> _Found:
    return {f"cmd_{order}": area((1 - faithful).abs(), FRACTIONS), f"cpr_{order}": area(faithful, FRACTIONS)}
