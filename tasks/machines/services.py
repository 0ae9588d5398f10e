"""Programs that run beside this one, each in a process group of its own, with its output in a log.

None outlives this process: it ends their groups, or tasks/machines/guard.py does if this process is killed.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from headstream.tasks import places
from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.machines import guard
from headstream.tasks.machines.guard import ProcessGroup, end_groups, running_groups

MAX_RESTARTS, RESTARTS_SECONDS = 5, 600.0
LOG_BYTES = 10_000_000
KEPT_LOGS = 5


class Service:
    """A program beside this one that can be restarted after it ended; processes that it left running keep running."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], announce: Callable[[int], None]
    ) -> None:
        self.name, self.log = name, places.log_folder() / f"{name}.log"
        self._command, self._environment, self._announce = command, dict(environment), announce
        self._restarts: deque[float] = deque(maxlen=MAX_RESTARTS)
        rotate_log(self.log)
        self.process = self._start()

    def has_ended(self) -> bool:
        """True if the program has ended, and must be restarted."""
        return self.process.poll() is not None

    def kill(self) -> None:
        """Kill the program, even if it hangs; processes that it started keep running."""
        self.process.kill()

    def restart(self) -> None:
        """Start the program again.

        Raises:
            WorkError: it has ended too often.
        """
        now = time.monotonic()
        if len(self._restarts) == MAX_RESTARTS and now - self._restarts[0] < RESTARTS_SECONDS:
            raise WorkError(
                f"the {self.name} exited {MAX_RESTARTS + 1} times in {RESTARTS_SECONDS / 60:.0f} minutes:"
                f" see {self.log}. Run `headstream up` again."
            )
        self._restarts.append(now)
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with open_log(self.log) as output:
            process = subprocess.Popen(
                self._command,
                env=self._environment,
                cwd=places.ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._announce(process.pid)
        return process


class Services:
    """The programs beside this one, in the order in which they were started."""

    def __init__(self, guard: int) -> None:
        self._guard = guard
        self._groups: list[ProcessGroup] = []
        self.started: list[Service] = []

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> Service:
        """Start a program that runs until `end`, which ends the last program started first."""
        service = Service(name, command, environment, partial(self._announce, len(self.started)))
        self.started.append(service)
        return service

    def trim(self) -> None:
        """Rotate long logs and forget process groups that have ended; to be called every few seconds."""
        self._groups = running_groups(self._groups)
        for service in self.started:
            with suppress(FileNotFoundError):
                if service.log.stat().st_size > LOG_BYTES:
                    rotate_log(service.log)

    def end(self) -> None:
        """End all services and everything that they left running."""
        end_groups(self._groups, reap=lambda: [service.has_ended() for service in self.started])

    def _announce(self, rank: int, group: int) -> None:
        self._groups.append((rank, group))
        with suppress(BrokenPipeError):
            os.write(self._guard, f"{rank} {group}\n".encode())


@contextmanager
def opened_services() -> Iterator[Services]:
    """Yield services that end with the block, or with this process if it is killed."""
    with subprocess.Popen([sys.executable, guard.__file__], stdin=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdin is not None
        services = Services(process.stdin.fileno())
        try:
            yield services
        finally:
            services.end()


def run_program(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a program to its end.

    Raises:
        WorkError: the program failed; the message ends with its last output.
    """
    done = subprocess.run(
        command,
        env=dict(environment),
        cwd=places.ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = " ".join((done.stdout + done.stderr).split())[-300:]
        raise WorkError(f"`{' '.join(command)}` failed: {said}")


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def require_free_address(host: str, port: int) -> None:
    """Raise UserError when no server can listen at an address, or no client could use it."""
    if host in ("", "::", "0.0.0.0"):
        raise UserError(
            f"--host must be an address of this machine that clients can use, got {host!r}. Give its address in your"
            " network."
        )
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UserError(
                f"can't listen at {host}:{port}: {error.strerror}. If `headstream up` is running already, use that;"
                " otherwise choose another --port."
            ) from None


def open_log(log: Path) -> BinaryIO:
    """Open a log for appending, so that writing continues at the start once it is emptied.

    If it can't be written, output goes nowhere: the work itself will report the problem.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("ab", buffering=0)
    except OSError:
        return open(os.devnull, "ab", buffering=0)


def rotate_log(log: Path) -> None:
    """Move older logs one number on, copy a log to name.log.1, and empty it even if the disk is full.

    An empty log is left alone, so that it doesn't push out older ones.
    """
    with suppress(OSError):
        if log.stat().st_size:
            for age in range(KEPT_LOGS - 1, 0, -1):
                with suppress(FileNotFoundError):
                    log.with_name(f"{log.name}.{age}").replace(log.with_name(f"{log.name}.{age + 1}"))
            with suppress(OSError):
                shutil.copyfile(log, log.with_name(f"{log.name}.1"))
            os.truncate(log, 0)
