"""Ends process groups, even when the process that started them was killed.

Run as a program, it reads one group per line from its standard input (rank and number), and ends them all when the
input closes.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable

STOP_SECONDS = 5.0  # between SIGTERM and SIGKILL
PRUNE_SECONDS = 60.0

ProcessGroup = tuple[int, int]  # rank, and number


def end_groups(groups: Iterable[ProcessGroup], reap: Callable[[], object] = lambda: None) -> None:
    """End process groups one after the other, the highest rank first.

    `reap` collects children that have ended: until then their groups still exist.
    """
    for _, group in sorted(groups, reverse=True):
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + STOP_SECONDS
            if not _signal(group, number):
                break
            while _signal(group, 0) and time.monotonic() < deadline:
                time.sleep(0.05)
                reap()


def running_groups(groups: Iterable[ProcessGroup]) -> list[ProcessGroup]:
    """The process groups that have not ended; the system may reuse the numbers of the others."""
    return [(rank, group) for rank, group in groups if _signal(group, 0)]


def _signal(group: int, number: int) -> bool:
    """Send a signal to a group, or none if `number` is 0; returns True if the group exists."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # the latter on macOS, when all are dead but not yet collected
        return False
    return True


def _guard() -> None:
    groups: list[ProcessGroup] = []
    while True:
        heard, _, _ = select.select([sys.stdin], [], [], PRUNE_SECONDS)
        groups = running_groups(groups)
        if heard:
            lines = os.read(sys.stdin.fileno(), 1000).splitlines()
            if not lines:
                break
            groups += [(int(rank), int(group)) for rank, group in map(bytes.split, lines)]
    end_groups(groups)


if __name__ == "__main__":
    _guard()
