"""The files in a folder and all its subfolders."""

import os
from collections.abc import Iterator
from pathlib import Path

GLOB_CHARACTERS = frozenset("*?[")  # that make a path a pattern


def files_below(root: Path, ignored: frozenset[str] = frozenset()) -> Iterator[Path]:
    """The files below `root`, without hidden and ignored names; a folder that links lead back to is entered once."""
    return filter(Path.is_file, entries_below(root, ignored))


def entries_below(root: Path, ignored: frozenset[str] = frozenset()) -> Iterator[Path]:
    """What `files_below` gives, and what is no file: links to nothing, pipes, sockets and devices."""

    def refuse(error: OSError) -> None:
        raise error

    entered = set()
    for folder, folders, names in os.walk(root, onerror=refuse, followlinks=True):
        real = os.path.realpath(folder)
        seen = real in entered
        entered.add(real)
        folders[:] = [] if seen else sorted(name for name in folders if name not in ignored and name[0] != ".")
        for name in [] if seen else sorted(names):
            if name[0] != ".":
                yield Path(folder, name)
