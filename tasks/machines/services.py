"""Programs that run beside this one, each in a process group of its own, its output in a log that doesn't grow on.

None outlives this process: it ends their groups, and tasks/machines/guard.py does if this process is killed.
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

from tasks import places
from tasks.errors import UserError, WorkError
from tasks.machines.guard import Group, end_groups, still_there

MAX_RESTARTS, RESTARTS_SECONDS = 5, 600.0
LOG_BYTES = 10_000_000
KEPT_LOGS = 5


class Service:
    """A program that is started again when it ends; what it leaves running in its group goes on."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], announce: Callable[[int], None]
    ) -> None:
        self.name, self.log = name, places.log_folder() / f"{name}.log"
        self._command, self._environment, self._announce = command, dict(environment), announce
        self._restarts: deque[float] = deque(maxlen=MAX_RESTARTS)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        _rotate(self.log)
        self.process = self._start()

    def has_ended(self) -> bool:
        """Whether it must be started again."""
        return self.process.poll() is not None

    def kill(self) -> None:
        """End it, even if it hangs; what it leaves running in its group goes on."""
        self.process.kill()

    def restart(self) -> None:
        """Start it again.

        Raises:
            WorkError: it ended too often.
        """
        now = time.monotonic()
        if len(self._restarts) == MAX_RESTARTS and now - self._restarts[0] < RESTARTS_SECONDS:
            raise WorkError(
                f"the {self.name} must go on, but it ended {MAX_RESTARTS + 1} times within"
                f" {RESTARTS_SECONDS / 60:.0f} minutes: see {self.log}. Run `headstream up` again."
            )
        self._restarts.append(now)
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:  # appending, so that a log that was emptied goes on at its beginning
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
    """The programs that run while `guarded` does."""

    def __init__(self, guard: int) -> None:
        self._guard = guard
        self._groups: list[Group] = []
        self.started: list[Service] = []

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> Service:
        """Start a program that is to go on, and to end before those started earlier."""
        service = Service(name, command, environment, partial(self._announce, len(self.started)))
        self.started.append(service)
        return service

    def tidy(self) -> None:
        """Begin long logs anew, and forget groups that ended; to be called now and then."""
        self._groups = still_there(self._groups)
        for service in self.started:
            with suppress(FileNotFoundError):
                if service.log.stat().st_size > LOG_BYTES:
                    _rotate(service.log)

    def end(self) -> None:
        """End them all."""
        end_groups(self._groups, wait=lambda: [service.has_ended() for service in self.started])

    def _announce(self, rank: int, group: int) -> None:
        self._groups.append((rank, group))
        with suppress(BrokenPipeError):
            os.write(self._guard, f"{rank} {group}\n".encode())


@contextmanager
def guarded() -> Iterator[Services]:
    """Programs for the length of a block."""
    with subprocess.Popen(
        [sys.executable, "-m", "tasks.machines.guard"], cwd=places.ROOT, stdin=subprocess.PIPE, start_new_session=True
    ) as guard:
        assert guard.stdin is not None
        services = Services(guard.stdin.fileno())
        try:
            yield services
        finally:
            services.end()


def call(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a program to its end.

    Raises:
        WorkError: it failed; ends with what it said last.
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
        raise WorkError(f"`{' '.join(command)}` must succeed, it said: {said}")


def require_free(host: str, port: int) -> None:
    """Raises UserError when nothing can listen at an address, or no client could name it."""
    if host in ("", "::", "0.0.0.0"):
        raise UserError(
            f"--host must be one address of this machine, which clients can use, got {host!r}. Give the one that"
            " it has in your network."
        )
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UserError(
                f"--host and --port must be an address that is free here, got {host}:{port}: {error.strerror}."
                " If headstream is up already, use that; else choose another --port."
            ) from None


def _rotate(log: Path) -> None:
    """Copy a log to name.log.1, the older ones one further each, and empty it, even if the disk is full."""
    if not log.exists():
        return
    for age in range(KEPT_LOGS - 1, 0, -1):
        with suppress(FileNotFoundError):
            log.with_name(f"{log.name}.{age}").replace(log.with_name(f"{log.name}.{age + 1}"))
    with suppress(OSError):
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
    os.truncate(log, 0)
