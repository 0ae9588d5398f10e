"""What `headstream up` looks at while it is up: parts that end or hang, and runs that died."""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import WorkPoolStatus
from prefect.exceptions import PrefectException
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from flows.recovery import look_after_runs, tell_of_runs_turned_away
from tasks.machines.services import Service, Services

ANSWER_SECONDS = 20.0  # for the server to answer one question
GAP = timedelta(seconds=30)  # in which this process did nothing: the machine slept, or its clock was set


def asking_once() -> AbstractContextManager[object]:
    """Prefect's clients in this process don't ask again: the next look does."""
    return temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: ANSWER_SECONDS})


class Watch:
    """The parts of an installation, and since when all of them have been there to hear of each other."""

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
        self._looked = self._answered = self._listening_since = self._told = datetime.now(UTC)

    def restart_what_ended(self) -> None:
        """Start parts again that ended.

        Raises:
            WorkError: a part ended again and again.
        """
        for service in self._services.started:
            if service.has_ended():
                self._say(f"the {service.name} ended; it starts again.")
                service.restart()
                if service is self._server:
                    self._wait_for_server()
                self._answered = self._listening_since = datetime.now(UTC)

    def look(self, pool: str, silence: timedelta) -> None:
        """Look after the runs of a work pool, and end a part that was silent for too long, so that it starts again."""
        before, now = self._looked, datetime.now(UTC)
        if now - before > GAP:
            self._answered = self._listening_since = now
        try:
            with suppress(httpx.HTTPStatusError, PrefectException), get_client(sync_client=True) as client:
                look_after_runs(client, pool, self._listening_since, silence)
                tell_of_runs_turned_away(client, pool, self._told, now)
                self._told = now
                without_worker = client.read_work_pool(pool).status is WorkPoolStatus.NOT_READY
                if without_worker and now - self._listening_since > 2 * silence:  # it may be slow to start
                    self._say("the worker gives no sign of life.")
                    self._worker.kill()
            self._answered = now
        except httpx.TransportError:
            self._listening_since = datetime.now(UTC)
            if now - self._answered > silence:
                self._say("the server does not answer.")
                self._server.kill()
        self._looked = datetime.now(UTC)
