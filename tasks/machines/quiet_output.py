"""A terminal that shows only what is meant for it: what libraries and child processes print goes to a log."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tasks import places
from tasks.machines.services import rotate_log
from tasks.machines.stopping import LastWords


@contextmanager
def output_to_log(words: LastWords) -> Iterator[TextIO]:
    """Inside the block, what this process and its children print goes to a log; yields what stderr was.

    Only `words`, those of a process that is stopped, then get there, and keep the block from ending.
    """
    log = _open_log(places.log_folder() / "run.log")
    saved = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    with os.fdopen(os.dup(2), "w", encoding=sys.stderr.encoding, errors="backslashreplace") as terminal:
        words.others.add(terminal.fileno())
        _redirect({1: log, 2: log})
        try:
            yield terminal
        finally:
            with words.being_said:
                _redirect(saved)
                words.others.remove(terminal.fileno())


def _open_log(file: Path) -> int:
    """A descriptor of the log, emptied; of nothing where it can't be written, which the run itself will tell."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        rotate_log(file)
        return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


def _redirect(targets: dict[int, int]) -> None:
    """Make descriptors stand for others, which are given back."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for descriptor, target in targets.items():
        os.dup2(target, descriptor)
    for target in {*targets.values()}:
        os.close(target)
