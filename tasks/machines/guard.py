"""Ending process groups, even when who started them was killed: `python -m tasks.machines.guard` does it from outside.

The guard hears of groups on its standard input, a rank and a number a line, and ends them when that closes.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable

STOP_SECONDS = 5.0  # between SIGTERM and SIGKILL
PRUNE_SECONDS = 60.0

Group = tuple[int, int]  # rank, and number


def end_groups(groups: Iterable[Group], wait: Callable[[], object] = lambda: None) -> None:
    """End one group after the other, that of the highest rank first.

    `wait` is called now and then, to wait for children that have ended: until then their groups are there.
    """
    for _, group in sorted(groups, reverse=True):
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + STOP_SECONDS
            if not _send(group, number):
                break
            while _send(group, 0) and time.monotonic() < deadline:
                time.sleep(0.05)
                wait()


def still_there(groups: Iterable[Group]) -> list[Group]:
    """Without those that ended, whose numbers may be given to others."""
    return [(rank, group) for rank, group in groups if _send(group, 0)]


def _send(group: int, number: int) -> bool:
    """Send a signal, of which 0 is none; whether the group is there."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # the latter, on macOS, when all are dead and not waited for
        return False
    return True


def _guard() -> None:
    groups: list[Group] = []
    while True:
        heard, _, _ = select.select([sys.stdin], [], [], PRUNE_SECONDS)
        groups = still_there(groups)
        if heard:
            lines = os.read(sys.stdin.fileno(), 1000).splitlines()
            if not lines:
                break
            groups += [(int(rank), int(group)) for rank, group in map(bytes.split, lines)]
    end_groups(groups)


if __name__ == "__main__":
    _guard()
