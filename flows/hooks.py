"""Hooks for Prefect: a notice to people when a run fails, and a time limit on deployed runs."""

import json
import os
import shlex
import subprocess
from logging import getLogger
from threading import Timer
from typing import Any

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.states import Failed

NOTICE_SECONDS = 30.0

log = getLogger(__name__)


def notify_of_failure(flow: Any, flow_run: Any, state: Any) -> None:
    """Send a JSON notice of a failed run to the address or command in HEADSTREAM_ON_FAILURE.

    A notice that can't be delivered is only logged: it must not change the run's outcome.
    """
    target = os.environ.get("HEADSTREAM_ON_FAILURE")
    if not target:
        return
    notice = {
        "flow": flow.name,
        "run": flow_run.name,
        "flow_run_id": str(flow_run.id),
        "state": state.name,
        "message": state.message,
    }
    try:
        if target.startswith(("http://", "https://")):
            httpx.post(target, json=notice, timeout=NOTICE_SECONDS).raise_for_status()
        else:
            subprocess.run(shlex.split(target), input=json.dumps(notice), text=True, timeout=NOTICE_SECONDS, check=True)
    except Exception as error:  # in the address, the network or the command
        log.error("the notice of %s was not delivered: %s", flow_run.name, type(error).__name__)


def fail_after(seconds: float) -> Any:
    """A hook for starting flows: a deployed run that takes longer fails, and its process ends, whatever it is doing.

    Prefect's own `timeout_seconds` waits for its threads, which wait for the models that they train.
    """

    def start_timer(flow: Any, flow_run: Any, state: Any) -> None:
        if flow_run.deployment_id is None:
            return  # the process isn't the run's own
        timer = Timer(seconds, _fail, (flow, flow_run, seconds))
        timer.daemon = True
        timer.start()

    return start_timer


def _fail(flow: Any, flow_run: Any, seconds: float) -> None:
    message = f"took longer than {seconds / 3600:g} hours; what is done is kept, and the next run continues from there"
    state: State[Any] = Failed(name="TimedOut", message=message)
    try:
        with get_client(sync_client=True) as client:
            client.set_flow_run_state(flow_run.id, state)
        for hook in flow.on_failure_hooks:
            hook(flow, flow_run, state)
    finally:
        os._exit(0)  # no crash: the state says it all
