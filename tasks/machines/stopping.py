"""Ctrl-C and its like: a process ends at once, with one line and a code that says which, and no child of it stays."""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import psutil

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KILL_SECONDS = 1.0
PR_SET_CHILD_SUBREAPER = 36
SHOW_CURSOR = b"\x1b[?25h"  # a live display hides it


class LastWords:
    """What a stopped process says of how far it came, where stderr is now, while nobody else prints."""

    def __init__(self) -> None:
        self.how_far: Callable[[], str] = lambda: " before it began"
        self.others = {1, 2}  # descriptors that others print to
        self.being_said = threading.Lock()
        self._is_put_off = False
        self._terminal = os.dup(2)

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """Inside the block of the main thread nothing is said; a signal that comes then is answered after it."""
        self._is_put_off = True  # first: a main thread that stood still with the lock would do so for ever
        try:
            with self.being_said:  # waits for ever when a signal came first
                yield
        finally:
            self._is_put_off = False

    def stand_still(self, *_: object) -> None:
        """Keep the main thread from seeing children end that the same signal went to; the watcher has been told."""
        if not self._is_put_off:
            threading.Event().wait()

    def silence_others(self) -> None:
        """Send to nowhere what other threads still print."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in self.others:
            os.dup2(nowhere, descriptor)

    def line(self) -> bytes:
        """The one line to say."""
        return f"headstream: stopped{self.how_far()}; the same command goes on from there.\n".encode()

    def say(self, line: bytes) -> None:
        """Print a line below whatever the terminal shows."""
        with suppress(OSError):  # a closed terminal
            os.write(self._terminal, (SHOW_CURSOR + b"\n" + line) if os.isatty(self._terminal) else line)

    def close(self) -> None:
        """Give back what `say` needs."""
        os.close(self._terminal)


@contextmanager
def stopping_at_signals() -> Iterator[LastWords]:
    """End this process and its descendants at once when a signal asks for it; yields what it then says.

    A thread does that, whatever the main thread is busy with, and by a hard exit: nobody else gets to print, and what
    is on disk is as after kill -9. Signals that this process was told to ignore, as by nohup, stay ignored.
    """
    words = LastWords()
    adopt_orphans(True)
    heard, told = os.pipe()
    os.set_blocking(told, False)
    watcher = threading.Thread(target=_stop_when_told, args=(heard, words), daemon=True)
    watcher.start()
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        if handlers[number] is not signal.SIG_IGN:
            signal.signal(number, words.stand_still)
    signal.set_wakeup_fd(told)
    try:
        yield words
    finally:
        with words.put_off():
            signal.set_wakeup_fd(-1)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.close(told)
        watcher.join()
        words.close()
        adopt_orphans(False)


def _stop_when_told(heard: int, words: LastWords) -> None:
    """Wait for the number of a signal; none comes when the block ends."""
    told = os.read(heard, 1)
    os.close(heard)
    if told:
        words.being_said.acquire()
        words.silence_others()
        line = words.line()  # before the end of children looks like a failure
        kill_descendants()
        words.say(line)
        os._exit(128 + told[0])


class Ended(BaseException):
    """Raised by a signal that asks for the end; no `except Exception` on its way may catch it."""

    def __init__(self, number: int) -> None:
        self.code = 128 + number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Inside the block a signal that asks for the end raises `Ended`, once: nothing may interrupt what follows.

    Signals that this process was told to ignore, as by nohup, stay ignored.
    """
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    heeded = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}

    def end(number: int, _: object) -> None:
        for other in heeded:
            signal.signal(other, signal.SIG_IGN)
        raise Ended(number)

    for number in heeded:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in heeded.items():
            signal.signal(number, handler)


def adopt_orphans(yes: bool) -> None:
    """On Linux, make what a descendant leaves behind a child of this process: else the end of one hides others."""
    with suppress(AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(yes))


def leave(code: int) -> NoReturn:
    """End this process, whatever its threads are doing: the interpreter would wait for them, or crash."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


def kill_descendants() -> None:
    """Kill -9 of all processes that this one started, and of theirs, and of what they start meanwhile."""
    deadline = time.monotonic() + KILL_SECONDS
    while (family := psutil.Process().children(recursive=True)) and time.monotonic() < deadline:
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=0.1)
