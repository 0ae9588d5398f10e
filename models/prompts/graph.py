"""The graph of a model: who writes to the stream, who reads it at which port, and the edges between them.

Readers that read the stream at one place are a level: the heads of a layer by their queries, keys and values, its
feed-forward layer, and in the end the logits. A level reads all writers before it, so that its edges are a table of
readers by writers, and all edges are these tables one after the other. Heads that share keys and values share the
edges into them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.models.nodes import MLP, Edge, Head, KeyValueGroup, Node, Port, Terminal

_Reader = tuple[Node, Port]


@dataclass(frozen=True)
class Level:
    """Readers of the stream at one place, and the first of their edges among all."""

    layer: int  # number of layers, if it is that of the logits
    kind: Literal["attention", "feed_forward", "logits"]
    readers: tuple[_Reader, ...]
    n_writers: int  # that it reads: so many of the graph's, the first ones
    first_edge: int
    place: int  # among all levels

    @property
    def edges(self) -> slice:
        """The place of its edges among all."""
        return slice(self.first_edge, self.first_edge + len(self.readers) * self.n_writers)


class PromptGraph:
    """Writers, readers and edges of a model of some architecture."""

    def __init__(self, architecture: Architecture) -> None:
        self.architecture = a = architecture
        self.writers: list[Node] = [Terminal.EMBEDDING]
        self.levels: list[Level] = []
        for layer, n_heads in enumerate(a.heads_per_layer):
            before = len(self.writers)
            self._add("attention", layer, tuple(_heads_readers(layer, n_heads, a.key_value_heads(n_heads))), before)
            self.writers += [Head(layer, head) for head in range(n_heads)]
            if a.feed_forward != "none":
                reads = before if a.parallel_sublayers else len(self.writers)
                self._add("feed_forward", layer, ((MLP(layer), "in"),), reads)
                self.writers.append(MLP(layer))
        self._add("logits", a.n_layers, ((Terminal.LOGITS, "in"),), len(self.writers))

    def _add(
        self,
        kind: Literal["attention", "feed_forward", "logits"],
        layer: int,
        readers: tuple[_Reader, ...],
        n_writers: int,
    ) -> None:
        first = self.levels[-1].edges.stop if self.levels else 0
        self.levels.append(Level(layer, kind, readers, n_writers, first, len(self.levels)))

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.levels[-1].edges.stop

    @cached_property
    def edges(self) -> list[Edge]:
        """Every edge, in the order of scores and circuits."""
        return list(self._edges())

    def _edges(self) -> Iterator[Edge]:
        for level in self.levels:
            for reader, port in level.readers:
                for writer in self.writers[: level.n_writers]:
                    yield Edge(writer, reader, port)

    def table(self, of_edges: Tensor, level: Level) -> Tensor:
        """What is said of all edges, [edge], of a level's: [reader, writer]."""
        return of_edges[level.edges].unflatten(0, (len(level.readers), level.n_writers))

    def heads_of(self, group: KeyValueGroup) -> range:
        """The heads of its layer that share a group's keys and values."""
        n = self.architecture.heads_per_layer[group.layer]
        size = n // self.architecture.key_value_heads(n)
        return range(group.group * size, (group.group + 1) * size)

    def connected(self, circuit: Bool[Tensor, "edge"]) -> Bool[Tensor, "edge"]:
        """The edges of a circuit that lie on a path from the embedding to the logits."""
        place = {writer: i for i, writer in enumerate(self.writers)}
        reached = torch.zeros(len(self.writers), dtype=torch.bool)
        reached[0] = True
        for level in self.levels[:-1]:
            entered = (self.table(circuit, level) & reached[: level.n_writers]).any(1)
            for (reader, _), is_entered in zip(level.readers, entered.tolist(), strict=True):
                if is_entered:
                    reached[[place[node] for node in self._nodes_of(reader)]] = True
        leads = torch.zeros(len(self.writers), dtype=torch.bool)
        kept = torch.zeros_like(circuit)
        for level in reversed(self.levels):
            goes_on = [self._goes_on(reader, leads, place) for reader, _ in level.readers]
            table = self.table(circuit, level) & reached[: level.n_writers] & torch.tensor(goes_on)[:, None]
            kept[level.edges] = table.flatten()
            leads[: level.n_writers] |= table.any(0)
        return kept

    def _nodes_of(self, reader: Node) -> list[Node]:
        """The writers whose output a reader decides."""
        if isinstance(reader, KeyValueGroup):
            return [Head(reader.layer, head) for head in self.heads_of(reader)]
        return [reader]

    def _goes_on(self, reader: Node, leads: Bool[Tensor, "writer"], place: dict[Node, int]) -> bool:
        return reader is Terminal.LOGITS or any(bool(leads[place[node]]) for node in self._nodes_of(reader))


def _heads_readers(layer: int, n_heads: int, n_groups: int) -> Iterator[_Reader]:
    """Queries of each head, then keys and then values of each head or group."""
    heads: list[Node] = [Head(layer, head) for head in range(n_heads)]
    groups = heads if n_groups == n_heads else [KeyValueGroup(layer, group) for group in range(n_groups)]
    for port, nodes in (("Q", heads), ("K", groups), ("V", groups)):
        for node in nodes:
            yield node, port  # type: ignore[misc]
