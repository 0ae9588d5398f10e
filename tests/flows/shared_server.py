"""Prefect's server for tests: one for all processes that run them, which ends when the last of them lets go of it.

Each holds a shared lock on a file, which the system takes from a process that is killed. Run as a program, this starts
the server, and ends it when nobody holds the lock any more.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ADDRESS, USERS, LOG = "address", "users", "server.log"


@contextmanager
def held_server(folder: Path) -> Iterator[None]:
    """Have Prefect's clients talk to the server of a folder, which the first who wants it starts."""
    from filelock import FileLock
    from prefect.context import _temporary_global_settings_context, get_settings_context
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from headstream.flows.prefect_server import send_what_is_left

    folder.mkdir(exist_ok=True)
    with (folder / USERS).open("a") as users:
        with FileLock(folder / "starting.lock"):
            fcntl.flock(users, fcntl.LOCK_SH)  # waits for the end of a server that everybody let go of
            address = _address(folder)
        with (
            temporary_settings({PREFECT_API_URL: address}),
            _temporary_global_settings_context(get_settings_context()),  # for threads, too
        ):
            yield
            send_what_is_left()


def _address(folder: Path) -> str:
    """The address of the server's API; it is started if it doesn't answer."""
    import httpx
    from waiting import until

    def answers() -> bool:
        try:
            return client.get(f"{(folder / ADDRESS).read_text()}/health").is_success
        except (OSError, httpx.HTTPError):
            return False

    with httpx.Client() as client:
        if not answers():
            _start(folder)
            until(answers, 120)
    return (folder / ADDRESS).read_text()


def _start(folder: Path) -> None:
    from prefect_database import DATABASE, put_prefect_database

    from headstream.flows.prefect_server import EPHEMERAL, server_command
    from headstream.tasks.machines.services import free_port

    if not (folder / DATABASE).exists():  # else it is that of a server that everybody let go of
        put_prefect_database(folder.parent, folder)
    port = free_port()
    (folder / ADDRESS).write_text(f"http://127.0.0.1:{port}/api")
    database = {"PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{folder / DATABASE}"}
    command = [sys.executable, __file__, folder, *server_command(port)]
    subprocess.run(command, env=os.environ | EPHEMERAL | database, stdin=subprocess.DEVNULL, check=True)


def _serve(folder: Path, command: list[str]) -> None:
    """In a process of its own, which nobody waits for."""
    if os.fork():
        return
    os.setsid()
    with (folder / USERS).open("a") as users, (folder / LOG).open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        with subprocess.Popen(command) as server:
            fcntl.flock(users, fcntl.LOCK_EX)
            server.terminate()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), sys.argv[2:])
