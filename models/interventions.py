"""Interventions in the passes of a model: silenced heads, heads that attend by a rule, and edges that are cut."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headstream.models.bos import NO_BOS
from headstream.models.nodes import MLP, Edge, Head, Port

PatternRule = Literal["previous", "self", "first", "uniform", "copies"]


@dataclass(frozen=True)
class Interventions:
    """What is done to the passes of a model; BOS, if it has one, is no token that a rule attends to."""

    silenced: frozenset[Head] = frozenset()
    clamped: Mapping[Head, PatternRule] = field(default_factory=dict)
    cut: frozenset[Edge] = frozenset()
    bos: int = NO_BOS

    def __bool__(self) -> bool:
        return bool(self.silenced or self.clamped or self.cut)

    def cuts_of(self, layer: int) -> list[tuple[Port, list[int], list[Head | MLP]]]:
        """Ports of a layer whose heads don't see all writers: those heads, and the writers that they don't see."""
        of_reader: dict[tuple[Port, Head], list[Head | MLP]] = defaultdict(list)
        for edge in self.cut:
            assert isinstance(edge.reader, Head)
            assert isinstance(edge.writer, Head | MLP)
            if edge.reader.layer == layer:
                of_reader[edge.port, edge.reader].append(edge.writer)
        alike: dict[tuple[Port, tuple[Head | MLP, ...]], list[int]] = defaultdict(list)
        for (port, reader), writers in sorted(of_reader.items()):
            alike[port, tuple(sorted(writers, key=str))].append(reader.head)
        return [(port, heads, list(writers)) for (port, writers), heads in alike.items()]
