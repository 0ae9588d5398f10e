"""An end to runs that take too long: they fail, with all their processes, and the next run goes on where they were."""

import os
from threading import Timer
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.states import Failed

from flows.notices import tell_of_failure


def fail_after(seconds: float) -> Any:
    """A hook for flows that begin to run: a deployed run's process ends when the time is over, whatever it is doing.

    Prefect's own `timeout_seconds` waits for the threads that are at work, and they for the models that they train.
    """

    def watch(flow: Any, flow_run: Any, state: Any) -> None:
        if flow_run.deployment_id is None:
            return  # the process isn't the run's own
        timer = Timer(seconds, _fail, (flow, flow_run, seconds))
        timer.daemon = True
        timer.start()

    return watch


def _fail(flow: Any, flow_run: Any, seconds: float) -> None:
    message = f"must end within {seconds / 3600:g} hours, but did not; what is done is kept, and the next run goes on"
    state: State[Any] = Failed(name="TimedOut", message=message)
    try:
        with get_client(sync_client=True) as client:
            client.set_flow_run_state(flow_run.id, state)
        tell_of_failure(flow, flow_run, state)
    finally:
        os._exit(0)  # no crash: the state says it all
