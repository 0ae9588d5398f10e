"""Lists in prose."""

from collections.abc import Sequence


def listed(items: Sequence[str]) -> str:
    """Items as prose lists them: `a, b and c`."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
