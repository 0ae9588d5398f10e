"""The nodes of a transformer's graph, the edges between them, and the label that a node has wherever it is named.

Nodes write to the residual stream and read what earlier ones wrote: `embedding`, the `position` embedding where it is
apart, `bias` (all biases but those of values, which belong to their heads), heads (`L0H3`), feed-forward layers
(`L0MLP`) and `logits`.
"""

import re
from enum import StrEnum
from typing import Literal, NamedTuple


class Terminal(StrEnum):
    """A node at either end of the graph: into all but the logits no edge leads, and out of the logits none."""

    EMBEDDING = "embedding"
    POSITION = "position"
    BIAS = "bias"
    LOGITS = "logits"


class Head(NamedTuple):
    """A head by its layer and its place in it."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}"


class MLP(NamedTuple):
    """A feed-forward layer, by the layer that it is in."""

    layer: int

    def __str__(self) -> str:
        return f"L{self.layer}MLP"


Node = Terminal | Head | MLP
Port = Literal["Q", "K", "V", "in"]  # the queries, keys or values of a head; "in" is all that another node reads
HEAD_PORTS: tuple[Port, ...] = ("Q", "K", "V")
HEAD_LABEL = re.compile(r"\bL(\d+)H(\d+)\b")
_MLP_LABEL = re.compile(r"L(\d+)MLP")


class Edge(NamedTuple):
    """What one node reads of another's output, through one of its ports."""

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
    if label in list(Terminal):
        return Terminal(label)
    raise ValueError(f"no node has the label {label!r}")
