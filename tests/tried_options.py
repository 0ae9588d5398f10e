"""Whether what a forward pass is declared to know is also tried."""

from collections.abc import Iterable

from headstream.models.architecture import Architecture
from headstream.models.known_options import KnownOptions


def untried(known: KnownOptions, architectures: Iterable[Architecture]) -> list[str]:
    """Values that none of the architectures has, and fields without choices that are nowhere but at their default."""
    tried = {name: {getattr(a, name) for a in architectures} for name in known}
    values = {f"{name} = {value!r}" for name, choices in known.items() for value in set(choices or ()) - tried[name]}
    fields = Architecture.model_fields
    return sorted(values | {name for name in known if tried[name] == {fields[name].default}})
