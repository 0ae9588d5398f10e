"""Circuits of a behaviour by size: those with the largest scores, beside random ones and exchanged answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstream.models.prompts.certainty import halves
from headstream.models.prompts.circuits import (
    FRACTIONS,
    Judged,
    area,
    faithfulness,
    judge,
    n_edges_at,
    random_circuit,
    strongest,
)
from headstream.models.prompts.pairs import Pairs
from headstream.tasks.measuring.measured_pairs import MeasuredPairs
from headstream.tasks.study.analyses.prompt_circuits_config import PromptCircuitsConfig

ENOUGH_OF_IT = 0.9  # of the whole difference, that a reported circuit makes
CUTS, ROUNDS = (4, 2)  # into so many parts the sizes between two are cut, so often, for the smallest that makes enough

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
        graph, sizes = self.own.graph, self._sizes
        curves = {order: self._by_size(strength) for order, strength in self._orders(generator).items()}
        absolute = curves["absolute"]
        where_found = self._judged(found_on, absolute, (0.0, 0.15))
        n_enough = self._smallest(where_found.faithfulness)
        enough = strongest(self.strength, n_enough, graph)
        without = [~circuit for circuit in absolute]
        together = [*(one for curve in curves.values() for one in curve), *without, enough]
        judged = self._judged(judged_on, together, (0.25, 0.8))
        parts = judged.split([*[len(sizes)] * (len(curves) + 1), 1])
        complete, of_enough = parts[-2].faithfulness.tolist(), parts[-1]
        rows = self._rows(absolute, where_found, {"edges_by": "absolute", "pairs": "found"})
        areas: _Found = {"cmd_where_found": area((1 - where_found.faithfulness).abs(), FRACTIONS)}
        for (order, circuits), part in zip(curves.items(), parts[:-2], strict=True):
            about = {"edges_by": order, "pairs": "judged"}
            rows += self._rows(circuits, part, about, complete if order == "absolute" else None)
            areas |= _areas(order, part.faithfulness)
        random_rows, faithful = self._random_curves(judged_on[: self.config.null_pairs], generator)
        areas |= _areas("random", faithful)
        areas |= {"n_edges_enough": n_enough, "n_connected_enough": int(enough.sum())}
        areas |= {f"{name}_enough": value for name, value in of_enough.columns()[0].items()}
        areas["kl_enough_nats"] = areas.pop("kl_nats_enough")
        return [*rows, *random_rows], areas

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

    def _by_size(self, strength: Float[Tensor, "edge"]) -> list[Bool[Tensor, "edge"]]:
        return [strongest(strength, n, self.own.graph) for n in self._sizes]

    def _random_curves(self, places: Tensor, generator: torch.Generator) -> tuple[list[_Found], Float[Tensor, "size"]]:
        """Rows of random circuits, and their faithfulness at each size, averaged over draws."""
        graph, sizes, draws = self.own.graph, self._sizes, range(self.config.random_circuits)
        circuits = [[random_circuit(n, graph, generator) for n in sizes] for _ in draws]
        every = self._judged(places, [one for own in circuits for one in own], (0.8, 1.0))
        parts = every.split([len(sizes)] * len(draws))
        rows = list[_Found]()
        for draw, (own, part) in enumerate(zip(circuits, parts, strict=True)):
            rows += self._rows(own, part, {"edges_by": "random", "pairs": "judged"}, draw=draw)
        return rows, torch.stack([part.faithfulness for part in parts]).mean(0)

    def _rows(
        self, circuits: _Circuits, found: "_Means", about: _Found, without: Sequence[float] | None = None, draw: int = 0
    ) -> list[_Found]:
        """A row for each circuit, by size."""
        sizes = zip(FRACTIONS, self._sizes, circuits, found.columns(), strict=True)
        return [
            {
                **about,
                "draw": draw,
                "fraction": fraction,
                "n_edges": n,
                "n_connected": int(circuit.sum()),
                "completeness": without[i] if without else None,
                **columns,
            }
            for i, (fraction, n, circuit, columns) in enumerate(sizes)
        ]

    def _judged(self, places: Tensor, circuits: _Circuits, time: tuple[float, float]) -> "_Means":
        """Faithfulness, KL divergence and accuracy of circuits on some pairs; those that are the same run once.

        `time` is when this begins and ends, as fractions of the whole search.
        """
        distinct, place = torch.stack(list(circuits)).unique(dim=0, return_inverse=True)
        odds = torch.empty(len(distinct), len(self.own.clusters), dtype=torch.float64)
        kl = torch.empty_like(odds)

        def run(pairs: Pairs) -> Judged:
            return judge(self.own.model, pairs, list(distinct), len(pairs))

        for own, found in self.own.of_part(*time).on_batches(places, run):
            odds[:, own], kl[:, own] = found.log_odds.double().cpu(), found.kl.double().cpu()
        own = odds[:, places]
        faithful = faithfulness(own, self.own.odds[0, places], self.own.odds[1, places])
        return _Means(faithful[place], kl[:, places].mean(1)[place], (own > 0).double().mean(1)[place])

    def _smallest(self, faithful: Float[Tensor, "size"]) -> int:
        """Edges of the smallest circuit tried that makes enough where it was found, to within a few sizes."""
        sizes, graph = self._sizes, self.own.graph
        first = next(i for i, value in enumerate(faithful.tolist()) if value >= ENOUGH_OF_IT or i == len(sizes) - 1)
        low, high = (sizes[first - 1] if first else 0), sizes[first]
        for i in range(ROUNDS):
            between = sorted({low + (high - low) * cut // CUTS for cut in range(1, CUTS)} - {low, high})
            if not between:
                break
            circuits = [strongest(self.strength, n, graph) for n in between]
            makes = self._judged(self._halves[0], circuits, (0.15 + 0.05 * i, 0.2 + 0.05 * i)).faithfulness
            enough = [n for n, made in zip(between, makes.tolist(), strict=True) if made >= ENOUGH_OF_IT]
            high = min([*enough, high])
            low = max([n for n in between if n < high], default=low)
        return high


class _Means(NamedTuple):
    """What circuits give on some pairs, one number a circuit."""

    faithfulness: Float[Tensor, "n"]
    kl: Float[Tensor, "n"]  # in nats
    accuracy: Float[Tensor, "n"]

    def split(self, sizes: Sequence[int]) -> list["_Means"]:
        """So many circuits in each part."""
        return [_Means(*part) for part in zip(*(each.split(list(sizes)) for each in self), strict=True)]

    def columns(self) -> list[_Found]:
        """The columns of each circuit."""
        numbers = zip(*(each.tolist() for each in self), strict=True)
        return [{"faithfulness": f, "kl_nats": kl, "accuracy": accuracy} for f, kl, accuracy in numbers]


def _areas(order: str, faithful: Float[Tensor, "size"]) -> _Found:
    return {f"cmd_{order}": area((1 - faithful).abs(), FRACTIONS), f"cpr_{order}": area(faithful, FRACTIONS)}
