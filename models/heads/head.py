"""What a head is called."""

from typing import NamedTuple


class Head(NamedTuple):
    """A head by its place."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}"
