"""Prefect for the command line: quiet, and with a temporary server if none is running."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

# Before Prefect is imported: no telemetry, which fails noisily offline; and no log lines in a run's log, since the
# server keeps them.
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
os.environ.setdefault("PREFECT_LOGGING_EXTRA_LOGGERS", "headstream")
os.environ.setdefault("PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW", "ignore")  # text is prepared before the flow begins

import httpx
import prefect
from prefect.client.orchestration import get_client
from prefect.events.worker import EventsWorker
from prefect.exceptions import PrefectException
from prefect.logging.handlers import APILogWorker
from prefect.settings import (
    PREFECT_API_REQUEST_TIMEOUT,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    temporary_settings,
)

from headstream.flows.server_health import wait_until_healthy
from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.machines.services import Service, free_port, opened_services

REACH_SECONDS = 10.0  # for a server that is there
DRAIN_SECONDS = 5.0
EPHEMERAL = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}


@contextmanager
def starting_server() -> Iterator[Future[None]]:
    """Connect to Prefect's server in the background: the one that PREFECT_API_URL names, or else a temporary one.

    The flow must wait for the result, which is an error if the server doesn't answer. Heartbeats are off: they let a
    scheduler notice dead runs, which a run in a terminal doesn't need, and take a second to stop.
    """
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}), ThreadPoolExecutor(2) as threads:
        given = PREFECT_API_URL.value()
        if given:
            yield threads.submit(_reach_server, given)
        else:
            with _temporary_server() as (server, address), temporary_settings({PREFECT_API_URL: address}):
                try:
                    yield threads.submit(_await_server, server, address)
                finally:
                    threads.submit(send_what_is_left).result()


def _reach_server(address: str) -> None:
    once = temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: REACH_SECONDS})
    try:
        with once, get_client(sync_client=True) as client:
            client.api_version()
    except (httpx.HTTPError, httpx.InvalidURL, PrefectException, RuntimeError, ValueError) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".: ")
        raise UserError(
            f"Prefect's server does not answer at {address}: {said:.300}. Start it with `headstream up`; if it asks for"
            " a password, set PREFECT_API_AUTH_STRING; or unset PREFECT_API_URL to do without it."
        ) from error


@contextmanager
def _temporary_server() -> Iterator[tuple[Service, str]]:
    """Start a Prefect server that ends with the block, or with this process; yields it and the address of its API.

    Prefect would start one by itself, but it would import the whole server here first, which takes seconds, wait for
    a process that has already exited, and leave the server running if this process is killed.
    """
    port = free_port()
    with opened_services() as services:
        server = services.start("run-server", server_command(port), os.environ | EPHEMERAL)
        yield server, f"http://127.0.0.1:{port}/api"


def server_command(port: int) -> list[str]:
    """The command of a Prefect server on this machine; `EPHEMERAL` goes into its environment."""
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(prefect.__module_path__.parent), "--factory"]
    command += ["prefect.server.api.server:create_app", "--host", "127.0.0.1", "--port", str(port)]
    return [*command, "--log-level", "error", "--lifespan", "on"]


def send_what_is_left() -> None:
    """Send remaining logs and events while there is a server: otherwise Prefect would keep trying for a minute."""
    for worker in (APILogWorker, EventsWorker):
        worker.drain_all(timeout=DRAIN_SECONDS)


def _await_server(server: Service, address: str) -> None:
    """Wait until a server answers.

    Raises:
        WorkError: it exited, or didn't answer in time.
    """
    if not wait_until_healthy(server, address):
        raise WorkError(
            f"Prefect's temporary server exited with code {server.process.returncode}; {server.log} may say why. Run"
            " the command again; or start a server with `headstream up` and set PREFECT_API_URL to it."
        )
