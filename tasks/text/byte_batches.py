"""Batches of bounded size, so that memory doesn't grow with a corpus."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def byte_batches(sized: Iterable[tuple[T, int]], limit: int) -> Iterator[list[T]]:
    """Group items, each given with its size, into lists that end when they reach `limit` bytes."""
    batch: list[T] = []
    held = 0
    for item, size in sized:
        batch.append(item)
        held += size
        if held >= limit:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
