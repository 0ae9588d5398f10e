"""Sends what libraries and child processes print to a log, so that the terminal shows only what is meant for it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter, TextIOWrapper
from typing import TextIO

from headstream.tasks import places
from headstream.tasks.machines.process_environment import Notices
from headstream.tasks.machines.services import open_log, rotate_log
from headstream.tasks.machines.stopping import StopMessage


@contextmanager
def output_to_log(stop_message: StopMessage) -> Iterator[TextIO]:
    """Send what this process and its children print inside the block to a log; yields the original stderr.

    `stop_message` is still printed to the terminal, and the block can't end while it is.
    """
    file = places.log_folder() / "run.log"
    rotate_log(file)
    with open_log(file) as opened:
        log = os.dup(opened.fileno())
    saved = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    shown = BufferedWriter(Notices(os.dup(2), "w"))
    with TextIOWrapper(shown, sys.stderr.encoding, "backslashreplace", line_buffering=os.isatty(2)) as terminal:
        stop_message.output_descriptors.add(terminal.fileno())
        _redirect({1: log, 2: log})
        try:
            yield terminal
        finally:
            with stop_message.deferred():
                _redirect(saved)
                stop_message.output_descriptors.remove(terminal.fileno())


def _redirect(targets: dict[int, int]) -> None:
    """Make each descriptor a copy of its target, and close the targets."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for descriptor, target in targets.items():
        os.dup2(target, descriptor)
    for target in {*targets.values()}:
        os.close(target)
