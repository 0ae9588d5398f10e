"""Progress of long work: steps publish it; what shows it (terminal, Prefect, log) listens."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

State = Literal["", "compiling", "waiting", "failed"]  # other than working: waiting is for another run


@dataclass(frozen=True)
class Event:
    """The progress of one step; `subject` names the model or corpus that it works on.

    `kept` is the fraction from which the step would go on if it were interrupted; `key` names the artifact that it
    makes among those of its stage; `text` is for people.
    """

    step: str
    subject: str
    fraction: float
    text: str = ""
    kept: float = 0.0
    key: str = ""
    state: State = ""


OnProgress = Callable[[float], None]  # is told how much is done, from 0 to 1


def within(tell: OnProgress, start: float, end: float) -> OnProgress:
    """Tells how much of a part is done as a fraction of the whole, in which the part is from `start` to `end`.

    >>> within(print, 0.5, 1.0)(0.5)
    0.75
    """
    return lambda fraction: tell(start + (end - start) * fraction)


Listener = Callable[[Event], object]
_listeners: list[Listener] = []
_lock = threading.Lock()


def publish(event: Event) -> None:
    """Tell every listener of an event, from any thread."""
    with _lock:
        for listener in _listeners:
            listener(event)


def listen(listener: Listener) -> None:
    """Have a listener hear every event from now on."""
    _listeners.append(listener)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have a listener hear every event inside the block."""
    listen(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
