"""Objects of JSON in which a name may stand twice, of which readers of JSON take the last without a word."""

from collections import Counter
from collections.abc import Sequence
from typing import Any


class RepeatedNameError(ValueError):
    """A name stands twice in an object."""


def distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object from its names and values, as `object_pairs_hook` of json.

    Raises:
        RepeatedNameError: a name stands twice in it.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedNameError(f"{twice(pairs)[0]!r:.80} stands twice in one object")
    return found


def twice(pairs: Sequence[tuple[str, Any]]) -> list[str]:
    """The names that an object has more than once."""
    return [name for name, n in Counter(name for name, _ in pairs).items() if n > 1]
