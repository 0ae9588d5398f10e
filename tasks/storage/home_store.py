"""The store of this installation."""

from collections.abc import Iterator
from contextlib import contextmanager

from headstream.tasks import places
from headstream.tasks.storage.store import Store


def open_store() -> Store:
    """The store below HEADSTREAM_HOME."""
    return Store(places.store_folder())


@contextmanager
def store_in_use() -> Iterator[None]:
    """Keep `gc` from removing anything while the block, or the decorated function, runs."""
    with open_store().shared_lock():
        yield
