"""Restarts runs that died, and notifies people of those that can't be restarted.

Prefect's automations are not enough: after a restart of its server they learn only after 15 minutes of runs that were
in progress, and never of a state that was set while the server died.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowRunFilter, WorkPoolFilter
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.events.filters import EventFilter
from prefect.states import Crashed, Failed, Scheduled

from headstream.flows.hooks import notify_of_failure

SETTLED = timedelta(seconds=20)  # a worker reports a crash twice; restarted in between, a run would run twice
MAX_CRASHES = 3  # of one run; after the last it has failed
CANCELLED_BY_LIMIT = "Deployment concurrency limit reached."  # Prefect's message when another run is in progress


def recover_runs(client: SyncPrefectClient, pool: str, listening_since: datetime, silence: timedelta) -> None:
    """Mark silent runs of a work pool as crashed, restart crashed runs, and fail those that crashed too often.

    It depends on the server's records alone, so it can be called at any time, any number of times.
    """
    states = [StateType.PENDING, StateType.RUNNING, StateType.CRASHED]
    found = FlowRunFilter.model_validate({"state": {"type": {"any_": states}}})
    runs = client.read_flow_runs(flow_run_filter=found, work_pool_filter=_in_pool(pool))
    now = datetime.now(UTC)
    for run in runs:
        assert run.state is not None
        changed = run.state.timestamp
        if run.state.is_crashed():
            if now - changed > SETTLED:
                _restart(client, run)
        elif now - max(changed, listening_since) > silence and not _is_heard(client, run, now - silence):
            client.set_flow_run_state(run.id, Crashed(message=f"no sign of life for {silence.seconds} s"), force=True)
            _restart(client, run)


def notify_of_cancelled_runs(client: SyncPrefectClient, pool: str, since: datetime, until: datetime) -> None:
    """Notify people of runs that Prefect cancelled between two times because their deployment was already running."""
    state, start = {"type": {"any_": [StateType.CANCELLED]}}, {"after_": since - timedelta(days=1)}
    cancelled = FlowRunFilter.model_validate({"state": state, "expected_start_time": start})
    for run in client.read_flow_runs(flow_run_filter=cancelled, work_pool_filter=_in_pool(pool)):
        assert run.state is not None
        if run.state.message == CANCELLED_BY_LIMIT and since <= run.state.timestamp < until:
            notify_of_failure(client.read_flow(run.flow_id), run, run.state)


def _in_pool(pool: str) -> WorkPoolFilter:
    return WorkPoolFilter.model_validate({"name": {"any_": [pool]}})


def _is_heard(client: SyncPrefectClient, run: FlowRun, since: datetime) -> bool:
    heard = {"occurred": {"since": since}, "resource": {"id": [f"prefect.flow-run.{run.id}"]}}
    return bool(client.read_events(EventFilter.model_validate(heard), limit=1).events)


def _restart(client: SyncPrefectClient, run: FlowRun) -> None:
    crashes = [state for state in client.read_flow_run_states(run.id) if state.is_crashed()]
    if len(crashes) < MAX_CRASHES:
        client.set_flow_run_state(run.id, Scheduled(message="starts again where it was"), force=True)
        return
    state: State[Any] = Failed(message=f"crashed {len(crashes)} times; the last time: {crashes[-1].message}")
    client.set_flow_run_state(run.id, state, force=True)
    notify_of_failure(client.read_flow(run.flow_id), run, state)
