"""Tensors of a model's files by their own names, each read on demand and not kept."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class FileTensors:
    """The tensors of one model."""

    names: frozenset[str]
    as_stored: Callable[[str], Tensor]

    def __getitem__(self, name: str) -> Tensor:
        """A tensor in float64."""
        return self.as_stored(name).double()

    def get(self, name: str) -> Tensor | None:
        """A tensor in float64; None if there is none of that name."""
        return self[name] if name in self.names else None

    def within(self, prefix: str) -> "FileTensors":
        """The tensors whose names begin with a prefix, by the rest of their names."""
        names = frozenset(name.removeprefix(prefix) for name in self.names if name.startswith(prefix))
        return FileTensors(names, lambda name: self.as_stored(prefix + name))

    def without(self, prefix: str) -> "FileTensors":
        """The same tensors, by names without a prefix that some files leave out."""
        full = {name.removeprefix(prefix): name for name in self.names}
        return FileTensors(frozenset(full), lambda name: self.as_stored(full[name]))
