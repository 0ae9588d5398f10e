"""The command `headstream up`: runs Prefect's server, the deployments and a worker, and restarts what ends."""

import os
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

from rich.console import Console

from headstream.flows.server_health import wait_until_healthy
from headstream.tasks import places
from headstream.tasks.errors import WorkError
from headstream.tasks.machines.process_environment import bypass_proxies
from headstream.tasks.machines.services import Service, Services, opened_services, require_free_address, run_program
from headstream.tasks.machines.stopping import StopRequested, raising_on_signals

POOL = "headstream"
PROGRAMS = Path(sys.executable).parent
PREFECT = (sys.executable, "-P", "-m", "prefect")
DEPLOYMENTS = str(places.ROOT / "flows" / "prefect.yaml")
HEARTBEAT_SECONDS = 30
SILENCE = timedelta(seconds=3 * HEARTBEAT_SECONDS)  # after which a run, the worker or the server counts as dead

CHECK_SECONDS = 5  # between checks for silence
SETTINGS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",  # old ones are removed
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS),
    "PREFECT_WORKER_QUERY_SECONDS": "5",  # so that a restarted run soon begins
    "PREFECT_LOGGING_EXTRA_LOGGERS": "headstream",
    "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
    # Leases in the server's memory would be lost with it, and a run that can't renew its lease ends itself.
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    "PATH": f"{PROGRAMS}{os.pathsep}{os.environ.get('PATH', '')}",  # prefect.yaml runs `python`
}


def serve(host: str, port: int, database_url: str | None) -> None:
    """Run Prefect's server, a worker and the deployments until a signal asks to stop, then stop all of them.

    Raises:
        UserError: the address is taken, or clients can't use it.
        WorkError: a service did not start, or keeps exiting.
    """
    require_free_address(host, port)
    bypass_proxies(host)
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    environment = environment_for(address, port, database_url)
    with raising_on_signals(), opened_services() as services:
        try:
            with console.status("starting Prefect's server"):
                command = [*PREFECT, "server", "start", "--host", host, "--port", str(port)]
                server = services.start("server", command, environment)
                if not wait_until_healthy(server, environment["PREFECT_API_URL"]):
                    raise WorkError(f"Prefect's server exited while it was starting: see {server.log}.")
            with console.status("creating deployments"):
                _deploy(environment)
            command = [*PREFECT, "worker", "start", "--pool", POOL, "--type", "process"]
            worker = services.start("worker", command, environment)
            console.print(f"Headstream is up: {address} shows runs and schedules. Ctrl-C stops everything.")
            console.print(f"Reports of runs are published at {address}/artifacts")
            _keep_up(services, server, worker, environment, console)
        except StopRequested:
            with suppress(OSError):  # the terminal was closed
                console.print("Stopping.")


def environment_for(address: str, port: int, database_url: str | None) -> dict[str, str]:
    """The environment variables of Prefect's server and of everything that talks to it."""
    own_pages = f"{address},http://localhost:{port}"  # other sites' pages could start runs here
    environment = {"PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": own_pages, **os.environ, **SETTINGS}
    if database_url:
        environment["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = database_url
    password = environment.get("PREFECT_SERVER_API_AUTH_STRING")
    if password:
        environment["PREFECT_API_AUTH_STRING"] = password
    roots = os.pathsep.join(str(root.absolute()) for root in places.corpus_roots())
    own = {"HEADSTREAM_HOME": str(places.home()), "HEADSTREAM_CORPUS_ROOTS": roots}  # services run in another folder
    return environment | own | {"PREFECT_API_URL": f"{address}/api"}


def _deploy(environment: Mapping[str, str]) -> None:
    """Create or update the work pool, and the deployments of prefect.yaml.

    Schedules that people added in Prefect's pages are kept, and paused deployments stay paused. Prefect keeps only
    schedules that have a slug, and would resume paused deployments.
    """
    from prefect.client.orchestration import get_client

    run_program([*PREFECT, "work-pool", "create", POOL, "--type", "process", "--overwrite"], environment)
    with _talking_to_server(environment), get_client(sync_client=True) as client:
        before = client.read_deployments()
        for deployment in before:
            for schedule in deployment.schedules:
                if not schedule.slug:
                    client.update_deployment_schedule(deployment.id, schedule.id, slug=f"added-{schedule.id}")
        run_program([*PREFECT, "--no-prompt", "deploy", "--all", "--prefect-file", DEPLOYMENTS], environment)
        for deployment in before:
            if deployment.paused:
                client.pause_deployment(deployment.id)


def _talking_to_server(environment: Mapping[str, str]) -> AbstractContextManager[object]:
    """Connect Prefect's clients in this process to the server that an environment names."""
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

    return temporary_settings({s: environment.get(s.name) for s in (PREFECT_API_URL, PREFECT_API_AUTH_STRING)})


def _keep_up(
    services: Services, server: Service, worker: Service, environment: Mapping[str, str], console: Console
) -> None:
    """Restart services that exit or hang, and runs that died, for ever.

    Raises:
        WorkError: a service keeps exiting.
    """
    from headstream.flows.supervision import Supervisor, without_retries

    def say(text: str) -> None:
        console.print(f"{datetime.now():%Y-%m-%d %H:%M:%S} {text}")

    supervisor = Supervisor(
        services, server, worker, lambda: wait_until_healthy(server, environment["PREFECT_API_URL"]), say
    )
    with _talking_to_server(environment), without_retries():
        for second in count():
            supervisor.restart_what_ended()
            if second % CHECK_SECONDS == 0:
                services.trim()
                supervisor.check(POOL, SILENCE)
            time.sleep(1)
