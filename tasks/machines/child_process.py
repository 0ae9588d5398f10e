"""Work in child processes: a crash, a kill or a leak ends that work alone, and no child outlives its parent."""

import errno
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from headstream.tasks import places
from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.files.system_errors import disk_is_full, memory_is_short
from headstream.tasks.study.stage import resolve
from headstream.tasks.study.stages import STAGES

# A server that has imported torch and all stages once forks children from itself: in milliseconds, not seconds.
_context = multiprocessing.get_context("forkserver")
PRELOADED = [
    *(stage.module for stage in STAGES.values()),
    "headstream.tasks.measuring.measure",
    "pyarrow.dataset",  # which every table that is written loads
    "torch._dynamo",  # which every optimiser loads
    "headstream.tasks.report.drawing",
]
COMPILER = "headstream.tasks.training.compiler_preload"  # takes as long as all others together where it is new
_context.set_forkserver_preload(PRELOADED)

CLEAN_EXIT_SECONDS = 10.0  # for a child that has sent its result; compilers leave things to clear away


def start_fork_server(compiling: bool = False) -> None:
    """Start the server that child processes are forked from, so that it imports torch while other work goes on.

    It loads torch's compiler, too, if work is `compiling`; of a server that runs already, children that compile load it
    themselves. It inherits a mask that blocks SIGINT: otherwise Ctrl-C would end it with a traceback while it imports.
    """
    if compiling:
        _context.set_forkserver_preload([*PRELOADED, COMPILER])
    resource_tracker.ensure_running()  # before the mask: once started, it lets SIGINT through
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def wait_for_fork_server() -> None:
    """Wait until the server has imported everything and forked a first child.

    Raises:
        ProcessDied: the server or the child ended before that.
    """
    run_in_process(_nothing)


def _nothing(on_progress: Callable[[Any], None]) -> None:
    """Do nothing: work for a first child."""


class ProcessDied(WorkError):
    """A child process ended without a result: killed, out of memory, or crashed. Worth another try."""


def call(place: str, *arguments: Any, **options: Any) -> Any:
    """Call the function at `module:function`: a parent that names it so needs not import it."""
    return resolve(place)(*arguments, **options)


def run_in_process(
    work: Callable[..., Any],
    *args: Any,
    on_progress: Callable[[Any], None] = lambda progress: None,
    environment: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Any:
    """Call `work(*args, on_progress=..., **kwargs)` in a child process, and `on_progress` here with each report.

    The child has this process's environment, with `environment` added, before it touches any device.

    Raises:
        UserError, WorkError, OSError: as the work raised them; any other exception becomes a WorkError.
        ProcessDied: the child ended without a result.
    """
    works = [partial(work, *args, **kwargs)]
    return run_side_by_side(works, lambda _, progress: on_progress(progress), environment)[0]


def run_side_by_side(
    works: Sequence[partial[Any]], on_progress: Callable[[int, Any], None], environment: Mapping[str, str] | None = None
) -> list[Any]:
    """Run several works at once, each as `run_in_process` runs one; a failure of one ends all.

    `on_progress` is called with the index of a work and its report. Returns their results.
    """
    # By default torch keeps compiled code below /tmp, where anybody could plant code for the child to run.
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(places.compiler_cache()), **os.environ, **(environment or {})}
    children: list[tuple[BaseProcess, Connection]] = []
    results: list[Any] = [None] * len(works)
    try:
        for work in works:
            children.append(_start(work, variables))
        waiting = {receiver: place for place, (_, receiver) in enumerate(children)}
        while waiting:
            for receiver in wait([*waiting]):
                assert isinstance(receiver, Connection)
                place = waiting[receiver]
                child, _ = children[place]
                try:
                    kind, value = receiver.recv()
                except EOFError:
                    child.join()
                    raise ProcessDied(_cause_of_death(_name_of(works[place]), child.exitcode)) from None
                if kind == "error":
                    raise value
                if kind == "result":
                    results[place] = value
                    del waiting[receiver]
                    child.join(CLEAN_EXIT_SECONDS)
                else:
                    on_progress(place, value)
        return results
    finally:
        for child, receiver in children:
            receiver.close()
            child.kill()
        for child, _ in children:
            child.join()


def _start(work: partial[Any], variables: Mapping[str, str]) -> tuple[BaseProcess, Connection]:
    start_fork_server()
    receiver, sender = _context.Pipe(duplex=False)
    child = _context.Process(target=_work, args=(sender, variables, work), daemon=True)
    try:
        child.start()
    except (EOFError, BrokenPipeError) as error:
        receiver.close()
        raise ProcessDied(f"{_name_of(work)}: the server that starts child processes ended too early.") from error
    finally:
        sender.close()
    return child, receiver


def _work(sender: Connection, variables: Mapping[str, str], work: partial[Any]) -> None:
    os.environ.update(variables)
    for number in (signal.SIGINT, signal.SIGHUP):  # from the terminal: the parent handles them
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        result = work(on_progress=lambda value: sender.send(("progress", value)))
        sender.send(("result", result))
    except Exception as error:
        sender.send(("error", _error_for_parent(_name_of(work), error)))


def _name_of(work: partial[Any]) -> str:
    """The name of the function that does the work."""
    name: str = work.args[0].partition(":")[2] if work.func is call else work.func.__name__
    return name


def _error_for_parent(name: str, error: Exception) -> Exception:
    """The error to raise in the parent: errors of this project and of the system as they are, others by their text."""
    for kind in (UserError, WorkError):
        if isinstance(error, kind):
            return kind(str(error))
    if disk_is_full(error):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # whichever library reported it
    if memory_is_short(error):
        reason = " ".join(str(error).split())[:200].rstrip(".") or "too little"
        return WorkError(f"{name} ran out of memory: {reason}. Use a smaller model or batch, or fewer jobs.")
    if isinstance(error, OSError):
        return OSError(error.errno, f"{name} failed: {error.strerror or error}", error.filename)
    traceback.print_exc()
    what = " ".join(str(error).split()).rstrip(".")
    return WorkError(f"{name} failed: {type(error).__name__}: {what}. The traceback is in {places.log_folder()}.")


def _cause_of_death(name: str, exit_code: int | None) -> str:
    killed = exit_code is not None and exit_code < 0
    how = f"was killed by signal {abs(exit_code or 0)}" if killed else f"ended with exit code {exit_code}"
    memory = " (most often: the machine ran out of memory)" if exit_code == -9 else ""
    return f"{name}: its process {how}{memory} before it was done."


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
