"""Work in a process of its own: a crash, a kill or a leak ends that work alone, and no child outlives its parent."""

import errno
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any

from tasks.errors import UserError, WorkError
from tasks.system_errors import disk_is_full, memory_is_short

# A server process that has imported torch once forks the others from itself, which takes milliseconds, not seconds.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    ["tasks.training.model_training", "tasks.artifact_specs"]
)  # the latter imports the other stages

CLEAN_EXIT_SECONDS = 10.0  # for a child that has answered; compilers leave things to clear away


def start_server() -> None:
    """Start the server that children are forked from, so that it imports torch while other work goes on."""
    forkserver.ensure_running()


class ProcessDied(WorkError):
    """A child ended without an answer: killed, out of memory, or crashed; worth another try."""


def run_in_process(
    work: Callable[..., Any],
    *args: Any,
    on_progress: Callable[[Any], None] = lambda progress: None,
    timeout_seconds: float | None = None,
    environment: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Any:
    """Call `work(*args, on_progress=..., **kwargs)` in a child; what it reports comes to `on_progress`, here.

    `environment` is added to the child's, before it touches any device.

    Raises:
        UserError, WorkError, OSError: as the work raised them; a WorkError for anything else that it raised.
        ProcessDied: the child ended without an answer, or ran out of its time.
    """
    receiver, sender = _context.Pipe(duplex=False)
    child = _context.Process(target=_serve, args=(sender, work, args, kwargs, dict(environment or {})), daemon=True)
    child.start()
    sender.close()
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    try:
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and (left <= 0 or not receiver.poll(left)):
                raise ProcessDied(f"{work.__name__} must end within {timeout_seconds:.0f} s, but did not: stopped.")
            kind, value = receiver.recv()
            if kind == "progress":
                on_progress(value)
            elif kind == "result":
                child.join(CLEAN_EXIT_SECONDS)
                return value
            else:
                raise value
    except EOFError:
        child.join()
        raise ProcessDied(_cause_of_death(work.__name__, child.exitcode)) from None
    finally:
        receiver.close()
        child.kill()
        child.join()


def end_together(pid: int) -> None:
    """Have a process end when this one does, even if that is killed."""
    _context.Process(target=_end_after_parent, args=(pid,), daemon=True).start()


def _end_after_parent(pid: int) -> None:
    _wait_for_parent()
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def _cause_of_death(name: str, exit_code: int | None) -> str:
    killed = exit_code is not None and exit_code < 0
    how = f"was killed by signal {abs(exit_code or 0)}" if killed else f"ended with exit code {exit_code}"
    memory = " (most often: the machine ran out of memory)" if exit_code == -9 else ""
    return f"{name}: its process {how}{memory} before it was done."


def _serve(sender: Connection, work: Callable[..., Any], args: tuple, kwargs: dict, environment: dict) -> None:
    os.environ.update(environment)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    try:
        result = work(*args, on_progress=lambda value: sender.send(("progress", value)), **kwargs)
        sender.send(("result", result))
    except Exception as error:
        sender.send(("error", _told(work.__name__, error)))


def _told(name: str, error: Exception) -> Exception:
    """What the parent raises: the errors of this project and of the system as such, of the rest their words."""
    for kind in (UserError, WorkError):
        if isinstance(error, kind):
            return kind(str(error))
    if disk_is_full(error):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # whichever library said so
    if memory_is_short(error):
        reason = " ".join(str(error).split())[:200].rstrip(".") or "too little"
        return WorkError(
            f"{name} must get the memory that it asks for, got: {reason}. Use a smaller model or batch, or fewer jobs."
        )
    if isinstance(error, OSError):
        return OSError(error.errno, f"{name} failed: {error.strerror or error}", error.filename)
    traceback.print_exc()
    return WorkError(f"{name} failed: {type(error).__name__}: {' '.join(str(error).split())}")


def _die_with_parent() -> None:
    _wait_for_parent()
    os._exit(1)


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
