"""`headstream up`: Prefect's server, deployments, automations and a worker, as one command that stops as one."""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

import httpx
from rich.console import Console

from tasks.errors import WorkError
from tasks.services import Service, call, require_free, running

POOL = "headstream"
PREFECT = str(Path(sys.executable).parent / "prefect")
START_SECONDS = 120.0
HEARTBEAT_SECONDS = 30
SETTINGS = {  # old events and runs go, and heartbeats tell of runs that died
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS),
    "PREFECT_LOGGING_EXTRA_LOGGERS": "tasks,flows",
    "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
}


class _Stopped(Exception):
    """A signal asked for the end."""


def up(host: str, port: int, database_url: str | None) -> None:
    """Run until Ctrl-C or SIGTERM; then stop all that was started.

    Raises:
        RequestError: the address is taken.
        WorkError: a part did not start, or ended by itself.
    """
    require_free(host, port)
    console, address = Console(stderr=True, highlight=False, soft_wrap=True), f"http://{host}:{port}"
    environment = environment_for(address, port, database_url)
    with ExitStack() as services, _stopping_on_signals():
        try:
            with console.status("starting Prefect's server"):
                command = [PREFECT, "server", "start", "--host", host, "--port", str(port)]
                server = services.enter_context(running("server", command, environment))
                _wait_until_healthy(server, address)
            with console.status("making deployments and automations"):
                call([PREFECT, "work-pool", "create", POOL, "--type", "process", "--overwrite"], environment)
                call([PREFECT, "--no-prompt", "deploy", "--all"], environment)
                _make_automations(environment)
            command = [PREFECT, "worker", "start", "--pool", POOL, "--type", "process"]
            worker = services.enter_context(running("worker", command, environment))
            console.print(f"Headstream is up: {address} shows runs and schedules. Ctrl-C stops everything.")
            while True:
                server.require_running()
                worker.require_running()
                time.sleep(1)
        except _Stopped:
            console.print("Stopping.")


def environment_for(address: str, port: int, database_url: str | None) -> dict[str, str]:
    """The environment of the server, and of all that talks to it."""
    own_pages = f"{address},http://localhost:{port}"  # not those of other sites, which could start runs here
    environment = {"PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": own_pages, **os.environ, **SETTINGS}
    if database_url:
        environment["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = database_url
    return environment | {"PREFECT_API_URL": f"{address}/api"}


def _wait_until_healthy(server: Service, address: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        server.require_running()
        try:
            if httpx.get(f"{address}/api/health", timeout=5).is_success:
                return
        except httpx.HTTPError:
            time.sleep(0.3)
    raise WorkError(f"Prefect's server must answer within {START_SECONDS:.0f} s, but did not: see {server.log}.")


def _make_automations(environment: Mapping[str, str]) -> None:
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from flows.automations import create_automations

    with temporary_settings({PREFECT_API_URL: environment["PREFECT_API_URL"]}), get_client(sync_client=True) as client:
        create_automations(client)


@contextmanager
def _stopping_on_signals() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise _Stopped

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
