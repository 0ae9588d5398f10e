"""Prefect as the command line uses it: quiet, and with a server of its own where none is up."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

# Before Prefect is imported: no telemetry, which fails loudly offline; enough time for its server to start on a busy
# machine; and no log lines in a run's log (Prefect's server keeps them).
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
os.environ.setdefault("PREFECT_LOGGING_EXTRA_LOGGERS", "tasks,flows")
os.environ.setdefault("PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW", "ignore")  # the text is made before the flow begins

import httpx
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectException
from prefect.settings import PREFECT_API_URL, PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from tasks.errors import UserError, WorkError
from tasks.machines.child_process import end_with_this_process


@contextmanager
def starting_server() -> Iterator[Future[None]]:
    """Reach Prefect's server in the background: the one that PREFECT_API_URL names, else one that is started here.

    The flow must wait for the result, which is an error if the server doesn't answer. Heartbeats are off: they tell a
    scheduler which runs have died, which a run in a terminal doesn't need, and take a second to stop.
    """
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}), ThreadPoolExecutor(1) as thread:
        yield thread.submit(_reach_server)


def _reach_server() -> None:
    try:
        with get_client(sync_client=True) as client:
            client.api_version()
    except (httpx.HTTPError, httpx.InvalidURL, PrefectException, RuntimeError) as error:
        got = f"{type(error).__name__}: {str(error).rstrip('.')}"
        if not (address := PREFECT_API_URL.value()):
            raise WorkError(
                f"A temporary server of Prefect's must start on this machine, got {got}. Run the command again; if it"
                " fails again, start one by `headstream up` and name it in PREFECT_API_URL."
            ) from error
        raise UserError(
            f"Prefect's server must answer at {address}, got {got}. Start it with `headstream up`; if it asks for a"
            " password, set PREFECT_API_AUTH_STRING; or unset PREFECT_API_URL to do without it."
        ) from error
    if not PREFECT_API_URL.value():
        from prefect.server.api.server import SubprocessASGIServer  # the client has imported it, which takes seconds

        if server := SubprocessASGIServer().server_process:
            end_with_this_process(server.pid)
