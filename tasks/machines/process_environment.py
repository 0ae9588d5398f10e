"""Keeps a command's surroundings (folder, locale, proxies, another Prefect) from disturbing its processes."""

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.machines.stopping import StopRequested

THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def isolate_child_processes() -> None:
    """Have child processes import nothing from the current folder, read UTF-8, and reach this machine without a proxy.

    A `models` folder or a `typing.py` there would be imported instead of the one that is meant; and torch would read
    its own files, which are UTF-8, in the locale's encoding.
    """
    os.environ |= {"PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}
    bypass_proxies(*THIS_MACHINE)


def tolerate_warnings() -> None:
    """Have no warning of a library end this process or its children, whatever PYTHONWARNINGS or -W ask for."""
    options = [option for option in sys.warnoptions if not "error".startswith(option.partition(":")[0])]
    if options != sys.warnoptions:
        sys.warnoptions[:] = options
        os.environ["PYTHONWARNINGS"] = ",".join(options)
        warnings.filters[:] = [each for each in warnings.filters if each[0] != "error"]  # type: ignore[index]


def choose_prefect_home(*folders: Path) -> None:
    """Have Prefect keep its database in the first of these folders that is writable; profiles stay the user's.

    PREFECT_HOME takes precedence. Prefect's own choice, ~/.prefect, may hold a database of another version, or be
    read-only.
    """
    given = os.environ.get("PREFECT_HOME")
    if given:
        os.environ["PREFECT_HOME"] = os.path.abspath(os.path.expanduser(given))  # its server starts elsewhere
        return
    profiles = os.path.expanduser("~/.prefect/profiles.toml")
    if os.access(profiles, os.R_OK):
        os.environ.setdefault("PREFECT_PROFILES_PATH", profiles)
    for folder in folders:
        os.environ["PREFECT_HOME"] = os.path.abspath(folder)
        with suppress(OSError):  # if the last folder fails too, Prefect's own error will say so
            folder.mkdir(parents=True, exist_ok=True)  # Prefect makes no parents
            if os.access(folder, os.W_OK):
                return


def bypass_proxies(*hosts: str) -> None:
    """Reach some hosts directly, without a proxy."""
    given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    known = [host for host in given.split(",") if host]
    # Programs differ in which of the two variables they read.
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(dict.fromkeys([*known, *hosts]))


def configure_output() -> None:
    """Print any character in any locale: as UTF-8, or escaped on a terminal that lacks it.

    Closed streams are sent to /dev/null: otherwise the next file opened would take their descriptor and be printed to.
    """
    closed = [descriptor for descriptor in range(3) if not _is_open(descriptor)]
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text_stream(sys.stdout, Output(1, was_closed=1 in closed))
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text_stream(sys.stderr, Notices(2, "w", closefd=False), line_buffering=True)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")


def _text_stream(given: TextIO | None, raw: FileIO, line_buffering: bool = False) -> TextIOWrapper:
    """A stream to `raw` like the one given; lines are written at once to a terminal, or if PYTHONUNBUFFERED is set."""
    encoding = given.encoding if given else "utf-8"
    at_once = line_buffering or raw.isatty() or getattr(given, "write_through", False)
    return TextIOWrapper(BufferedWriter(raw), encoding, line_buffering=at_once)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


class Notices(FileIO):
    """A descriptor to print notices to. If that fails, there is nobody to tell, and the work goes on."""

    def write(self, content: Any) -> int:
        with suppress(OSError):
            return super().write(content)
        return len(content)


class Output(FileIO):
    """A descriptor to print to, which loses nothing in silence.

    Writing to it ends the program, with the exit code of SIGPIPE, once nobody reads what it prints. After a signal that
    came while something was written nothing more is.

    Raises:
        WorkError: by writing, if it was closed from the beginning, or its disk is full.
    """

    def __init__(self, descriptor: int, *, was_closed: bool = False) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._nowhere = os.fstat(descriptor) if was_closed else None
        self._is_given_up = False

    def write(self, content: Any) -> int:
        if self._is_given_up:
            return len(content)
        if self._nowhere and os.path.samestat(os.fstat(self.fileno()), self._nowhere):
            raise WorkError("the output is closed, so nothing can be printed. Leave it open, or send it to /dev/null.")
        try:
            return super().write(content)
        except BrokenPipeError:
            raise SystemExit(128 + signal.SIGPIPE) from None
        except OSError as error:
            raise WorkError(f"the output can't be written: {error.strerror}. Send it elsewhere.") from error
        except (KeyboardInterrupt, StopRequested):  # how much of it was written isn't known: it could be told twice
            self.give_up()
            raise

    def give_up(self) -> None:
        """Discard what is still written: Python would end with an error of its own when it exits."""
        self._is_given_up = True


@contextmanager
def output_written() -> Iterator[None]:
    """Write what the block prints before it ends, while a failure can still be told."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    finally:
        raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
        if isinstance(raw, Output):
            raw.give_up()


def require_current_folder() -> None:
    """Refuse to start in a deleted folder, from which torch's libraries can't be loaded.

    Raises:
        UserError: the current folder was deleted.
    """
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError("the current folder was deleted. Change to another one.") from error
