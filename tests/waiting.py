"""Waiting for what a test needs: no longer than it takes, and not for ever."""

import threading
import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"what was waited for must come true within {seconds:g} s"
        threading.Event().wait(0.02)
