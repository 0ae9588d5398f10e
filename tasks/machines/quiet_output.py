"""A terminal that shows only what is meant for it: what libraries and child processes print goes to a log."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from headstream.tasks import places
from headstream.tasks.machines.services import open_log, rotate_log
from headstream.tasks.machines.stopping import LastWords


@contextmanager
def output_to_log(words: LastWords) -> Iterator[TextIO]:
    """Inside the block, what this process and its children print goes to a log; yields what stderr was.

    Only `words`, those of a process that is stopped, then get there, and keep the block from ending.
    """
    file = places.log_folder() / "run.log"
    rotate_log(file)
    with open_log(file) as opened:
        log = os.dup(opened.fileno())
    saved = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    with os.fdopen(os.dup(2), "w", encoding=sys.stderr.encoding, errors="backslashreplace") as terminal:
        words.others.add(terminal.fileno())
        _redirect({1: log, 2: log})
        try:
            yield terminal
        finally:
            with words.put_off():
                _redirect(saved)
                words.others.remove(terminal.fileno())


def _redirect(targets: dict[int, int]) -> None:
    """Make descriptors stand for others, which are given back."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for descriptor, target in targets.items():
        os.dup2(target, descriptor)
    for target in {*targets.values()}:
        os.close(target)
