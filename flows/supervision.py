"""Supervises what `headstream up` started: services that exit or hang, and runs that died."""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import WorkPoolStatus
from prefect.exceptions import PrefectException
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from headstream.flows.recovery import notify_of_cancelled_runs, recover_runs
from headstream.tasks.machines.services import Service, Services

ANSWER_SECONDS = 20.0  # for the server to answer one request
GAP = timedelta(seconds=30)  # between two checks: the machine slept, or its clock was set


def without_retries() -> AbstractContextManager[object]:
    """Keep Prefect's clients in this process from repeating requests: the next check will."""
    return temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: ANSWER_SECONDS})


class Supervisor:
    """The services of an installation, and the time since which all of them have been running and can be heard."""

    def __init__(
        self,
        services: Services,
        server: Service,
        worker: Service,
        wait_for_server: Callable[[], object],
        say: Callable[[str], None],
    ) -> None:
        self._services, self._server, self._worker = services, server, worker
        self._wait_for_server, self._say = wait_for_server, say
        self._checked = self._answered = self._listening_since = self._notified = datetime.now(UTC)

    def restart_what_ended(self) -> None:
        """Restart services that exited.

        Raises:
            WorkError: a service keeps exiting.
        """
        for service in self._services.started:
            if service.has_ended():
                self._say(f"the {service.name} exited and is being restarted.")
                service.restart()
                if service is self._server:
                    self._wait_for_server()
                self._answered = self._listening_since = datetime.now(UTC)

    def check(self, pool: str, silence: timedelta) -> None:
        """Recover runs of a work pool, and kill a service that has been silent for too long, to have it restarted."""
        before, now = self._checked, datetime.now(UTC)
        if now - before > GAP:
            self._answered = self._listening_since = now
        try:
            with suppress(httpx.HTTPStatusError, PrefectException), get_client(sync_client=True) as client:
                recover_runs(client, pool, self._listening_since, silence)
                notify_of_cancelled_runs(client, pool, self._notified, now)
                self._notified = now
                without_worker = client.read_work_pool(pool).status is WorkPoolStatus.NOT_READY
                if without_worker and now - self._listening_since > 2 * silence:  # the worker may be slow to start
                    self._say("the worker shows no sign of life and is being killed.")
                    self._worker.kill()
            self._answered = now
        except httpx.TransportError:
            self._listening_since = datetime.now(UTC)
            if now - self._answered > silence:
                self._say("the server does not answer and is being killed.")
                self._server.kill()
        self._checked = datetime.now(UTC)
