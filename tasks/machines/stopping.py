"""Ctrl-C and other stop signals: the process exits at once with one line and the signal's code, and leaves no child."""

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


class StopMessage:
    """The line that a stopped process prints about its progress, to the stderr of now, while nothing else prints."""

    def __init__(self) -> None:
        self.how_far: Callable[[], str] = lambda: " before it began"
        self.goes_on = True  # when the same command is given again
        self.output_descriptors = {1, 2}  # that other threads print to
        self.printing = threading.Lock()
        self._is_deferred = False
        self._terminal = os.dup(2)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Print nothing during this block of the main thread; a signal that arrives then is handled after it."""
        self._is_deferred = True  # first: a main thread that blocked while it held the lock would do so for ever
        try:
            with self.printing:  # waits for ever if a signal came first
                yield
        finally:
            self._is_deferred = False

    def block_main_thread(self, *_: object) -> None:
        """Keep the main thread from noticing children that the same signal ended; the watcher already knows of it."""
        if not self._is_deferred:
            threading.Event().wait()

    def silence_other_output(self) -> None:
        """Discard what other threads still print."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in self.output_descriptors:
            os.dup2(nowhere, descriptor)

    def line(self) -> bytes:
        """The one line to print."""
        then = "; the same command continues from there" if self.goes_on else ""
        return f"headstream: stopped{self.how_far()}{then}.\n".encode()

    def print(self, line: bytes) -> None:
        """Print a line below whatever the terminal shows."""
        with suppress(OSError):  # a closed terminal
            os.write(self._terminal, (SHOW_CURSOR + b"\n" + line) if os.isatty(self._terminal) else line)

    def close(self) -> None:
        """Close the descriptor that `print` needs."""
        os.close(self._terminal)


@contextmanager
def stopping_at_signals() -> Iterator[StopMessage]:
    """End this process and its descendants at once when a signal asks for it; yields the message that it then prints.

    A thread does that, whatever the main thread is doing, by a hard exit: nothing else gets to print, and the disk is
    left as by kill -9. Signals that this process was told to ignore, as by nohup, stay ignored.
    """
    message = StopMessage()
    adopt_orphans(True)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    watcher = threading.Thread(target=_exit_on_signal, args=(reader, message), daemon=True)
    watcher.start()
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        if handlers[number] is not signal.SIG_IGN:
            signal.signal(number, message.block_main_thread)
    signal.set_wakeup_fd(writer)
    try:
        yield message
    finally:
        with message.deferred():
            signal.set_wakeup_fd(-1)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.close(writer)
        watcher.join()
        message.close()
        adopt_orphans(False)


def _exit_on_signal(reader: int, message: StopMessage) -> None:
    """Wait for a signal, and exit; the end of the block closes the pipe, and nothing happens."""
    received = os.read(reader, 1)
    os.close(reader)
    if received:
        message.printing.acquire()
        message.silence_other_output()
        line = message.line()  # before the end of children looks like a failure
        kill_descendants()
        message.print(line)
        os._exit(128 + received[0])


class StopRequested(BaseException):
    """Raised when a signal asks this process to stop; a BaseException, so that no `except Exception` catches it."""

    def __init__(self, number: int) -> None:
        self.code = 128 + number


@contextmanager
def raising_on_signals() -> Iterator[None]:
    """Raise `StopRequested` at the first stop signal in this block, and ignore later ones while it is handled.

    Signals that this process was told to ignore, as by nohup, stay ignored.
    """
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    heeded = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}

    def end(number: int, _: object) -> None:
        for other in heeded:
            signal.signal(other, signal.SIG_IGN)
        raise StopRequested(number)

    for number in heeded:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in heeded.items():
            signal.signal(number, handler)


def adopt_orphans(yes: bool) -> None:
    """On Linux, make processes that a descendant leaves behind children of this one, so that they can be found."""
    with suppress(AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(yes))


def exit_immediately(code: int) -> NoReturn:
    """End this process, whatever its threads are doing: a normal exit would wait for them, or crash."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nothing reads it any more
            stream.flush()
    with suppress(OSError):  # the terminal is gone
        if os.isatty(1):
            os.write(1, SHOW_CURSOR)  # what was cut short may have hidden it
    os._exit(code)


def kill_descendants() -> None:
    """Kill every process that this one started, directly or not, and any that they start meanwhile."""
    deadline = time.monotonic() + KILL_SECONDS
    descendants = psutil.Process().children(recursive=True)
    while descendants and time.monotonic() < deadline:
        for process in descendants:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(descendants, timeout=0.1)
        descendants = psutil.Process().children(recursive=True)
