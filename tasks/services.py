"""Programs that run beside this one: each in a process group of its own, its output in a log, ended as a whole."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tasks import places
from tasks.errors import RequestError, WorkError

STOP_SECONDS = 20.0
KEPT_LOGS = 5


@dataclass(frozen=True)
class Service:
    """A running program."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def require_running(self) -> None:
        """Raises WorkError when it has ended."""
        if self.process.poll() is not None:
            raise WorkError(f"the {self.name} must go on, but it ended: see {self.log}. Run `headstream up` again.")


@contextmanager
def running(name: str, command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Service]:
    """Run a program while the block does; it gets SIGTERM after it, and SIGKILL if it stays."""
    log = _new_log(name)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=places.ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield Service(name, process, log)
    finally:
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, sign)
                process.wait(STOP_SECONDS)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


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
    """Raises RequestError when nothing can listen at an address."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise RequestError(
                f"--host and --port must be an address that is free here, got {host}:{port}: {error.strerror}."
                " If headstream is up already, use that; else choose another --port."
            ) from None


def _new_log(name: str) -> Path:
    """A log that is empty; those of earlier runs are kept, the newest as name.log.1."""
    folder = places.log_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for age in range(KEPT_LOGS - 1, -1, -1):
        older = folder / (f"{name}.log.{age}" if age else f"{name}.log")
        if older.exists():
            older.replace(folder / f"{name}.log.{age + 1}")
    return folder / f"{name}.log"
