"""Removals: one or several earlier heads taken out of a later one's queries, its keys or its values alone.

Everything else that the head reads keeps its true value, norm scales included.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.circuits.paths import HeadPath
from headstream.models.frozen import FrozenLayer, FrozenRun
from headstream.models.nodes import HEAD_PORTS, Edge, Head, Node, Port

Removal = tuple[Edge, ...]  # from earlier heads into one port of a later one, taken out together


@dataclass(frozen=True)
class Variant:
    """All heads of a layer without some writers in their queries, keys or values, and the removals that it answers."""

    layer: int
    removals: dict[Head, Removal]  # by reader
    port: Port
    pattern: Float[Tensor, "batch head q_pos k_pos"]
    values: Float[Tensor, "batch head pos d_value"]


def edges_of(pairs: Iterable[HeadPath]) -> list[Edge]:
    """The edges from earlier heads to later ones: to queries, to keys and to values."""
    return [Edge(writer, reader, port) for writer, reader in pairs for port in HEAD_PORTS]


def variants(run: FrozenRun, removals: Collection[Removal]) -> Iterator[Variant]:
    """The variants to compute, one for all removals of a layer that differ in the reader alone."""
    for i, (layer, sources) in enumerate(zip(run.layers, run.sources(), strict=False)):
        groups: dict[tuple[tuple[Node, ...], Port], dict[Head, Removal]] = defaultdict(dict)
        for removal in removals:
            reader, port = entered(removal)
            if reader.layer == i:
                groups[writers_of(removal), port][reader] = removal
        q, k, v = layer.attention.queries_keys_values(layer.read)
        for (writers, port), own in groups.items():
            part = torch.stack([sources[writer] for writer in writers]).sum(0)
            if port == "Q":
                yield Variant(i, own, port, _pattern(layer, q - layer.queries(part), k), v)
            elif port == "K":
                yield Variant(i, own, port, _pattern(layer, q, k - layer.keys(part)), v)
            else:
                yield Variant(i, own, port, layer.trace.pattern, v - layer.values(part))


def writers_of(removal: Removal) -> tuple[Node, ...]:
    """The heads that are taken out."""
    return tuple(edge.writer for edge in removal)


def entered(removal: Removal) -> tuple[Head, Port]:
    """The head that all edges of a removal enter, and by which port.

    Raises:
        ValueError: they don't all enter one port of a head.
    """
    reader, port = removal[0].reader, removal[0].port
    is_one = all((edge.reader, edge.port) == (reader, port) for edge in removal)
    if not (is_one and isinstance(reader, Head) and port in HEAD_PORTS):
        raise ValueError(f"the edges of a removal must all enter one port of a head, got {removal}")
    return reader, port


def _pattern(
    layer: FrozenLayer, q: Float[Tensor, "batch head pos d_head"], k: Float[Tensor, "batch head pos d_head"]
) -> Float[Tensor, "batch head q_pos k_pos"]:
    return layer.attention.pattern(q * layer.attention.scale @ k.mT)
