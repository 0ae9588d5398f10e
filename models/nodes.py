"""The nodes of a transformer's graph, the edges between them, and the label of each node wherever it is named.

Nodes write to the residual stream and read the outputs of earlier ones: `embedding`, a separate `position` embedding,
`bias` (all biases but those of values, which belong to their heads), heads (`L0H3`), feed-forward layers (`L0MLP`) and
`logits`. Heads that share keys and values read through a group (`L0G1`).
"""

import re
from enum import StrEnum
from typing import Literal, NamedTuple


class Terminal(StrEnum):
    """A node at either end of the graph: no edge leads into any but the logits, nor out of the logits."""

    EMBEDDING = "embedding"
    POSITION = "position"
    BIAS = "bias"
    LOGITS = "logits"


class Head(NamedTuple):
    """A head by its layer and its index there."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}"


class MLP(NamedTuple):
    """A feed-forward layer, by its layer."""

    layer: int

    def __str__(self) -> str:
        return f"L{self.layer}MLP"


class KeyValueGroup(NamedTuple):
    """The keys and values that a group of heads shares, by its layer and its index there."""

    layer: int
    group: int
    kind: str = "keys and values"  # so that it equals no head

    def __str__(self) -> str:
        return f"L{self.layer}G{self.group}"


Node = Terminal | Head | MLP | KeyValueGroup
Port = Literal["Q", "K", "V", "in"]  # the queries, keys or values of a head; "in" for the whole input of other nodes
HEAD_PORTS: tuple[Port, ...] = ("Q", "K", "V")
HEAD_LABEL = re.compile(r"\bL(\d+)H(\d+)\b")
_MLP_LABEL = re.compile(r"L(\d+)MLP")
_GROUP_LABEL = re.compile(r"L(\d+)G(\d+)")


class Edge(NamedTuple):
    """The part of one node's input, at one of its ports, that comes from another node's output."""

    writer: Node
    reader: Node
    port: Port


def parse_node(label: str) -> Node:
    """The node of a label.

    Raises:
        ValueError: no node has that label.
    """
    if head := HEAD_LABEL.fullmatch(label):
        return Head(int(head[1]), int(head[2]))
    if layer := _MLP_LABEL.fullmatch(label):
        return MLP(int(layer[1]))
    if group := _GROUP_LABEL.fullmatch(label):
        return KeyValueGroup(int(group[1]), int(group[2]))
    if label in list(Terminal):
        return Terminal(label)
    raise ValueError(f"no node has the label {label!r}")
