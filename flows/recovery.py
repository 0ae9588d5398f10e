"""Runs that died: they start again where they were, and people are told of one that dies again and again, or was due
while another went on.

Prefect's automations are not enough for that: after a restart of its server they hear of the runs that were under way
15 minutes late, and of a state that was set while the server died not at all.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
    WorkPoolFilter,
    WorkPoolFilterName,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.events.filters import EventFilter, EventOccurredFilter, EventResourceFilter
from prefect.states import Crashed, Failed, Scheduled

from flows.notices import tell_of_failure

SETTLED = timedelta(seconds=20)  # a worker reports a crash twice: started again in between, a run would run twice
MAX_CRASHES = 3  # of one run; the last is a failure
TURNED_AWAY = "Deployment concurrency limit reached."  # what Prefect says of a run that was due while another went on

UNDER_WAY = [StateType.PENDING, StateType.RUNNING]


def look_after_runs(client: SyncPrefectClient, pool: str, listening_since: datetime, silence: timedelta) -> None:
    """Crash runs of a work pool that went silent, start crashed ones again, and fail those that crashed too often.

    What is done depends on the server's records alone, so it may be done at any time, and again.
    """
    states = FlowRunFilterStateType(any_=[*UNDER_WAY, StateType.CRASHED])
    runs = client.read_flow_runs(
        flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=states)),
        work_pool_filter=_of(pool),
    )
    now = datetime.now(UTC)
    for run in runs:
        assert run.state is not None
        changed = run.state.timestamp
        if run.state.is_crashed():
            if now - changed > SETTLED:
                _start_again(client, run)
        elif now - max(changed, listening_since) > silence and not _is_heard(client, run, now - silence):
            client.set_flow_run_state(run.id, Crashed(message=f"no sign of life for {silence.seconds} s"), force=True)
            _start_again(client, run)


def tell_of_runs_turned_away(client: SyncPrefectClient, pool: str, since: datetime, until: datetime) -> None:
    """Tell people of runs that Prefect cancelled in that time because another of their deployment was going on."""
    cancelled = FlowRunFilter(
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.CANCELLED])),
        expected_start_time=FlowRunFilterExpectedStartTime(after_=since - timedelta(days=1)),
    )
    for run in client.read_flow_runs(flow_run_filter=cancelled, work_pool_filter=_of(pool)):
        assert run.state is not None
        if run.state.message == TURNED_AWAY and since <= run.state.timestamp < until:
            tell_of_failure(client.read_flow(run.flow_id), run, run.state)


def _of(pool: str) -> WorkPoolFilter:
    return WorkPoolFilter(name=WorkPoolFilterName(any_=[pool]))


def _is_heard(client: SyncPrefectClient, run: FlowRun, since: datetime) -> bool:
    events = EventFilter(
        occurred=EventOccurredFilter(since=since), resource=EventResourceFilter(id=[f"prefect.flow-run.{run.id}"])
    )
    return bool(client.read_events(events, limit=1).events)


def _start_again(client: SyncPrefectClient, run: FlowRun) -> None:
    crashes = [state for state in client.read_flow_run_states(run.id) if state.is_crashed()]
    if len(crashes) < MAX_CRASHES:
        client.set_flow_run_state(run.id, Scheduled(message="starts again where it was"), force=True)
        return
    state: State[Any] = Failed(message=f"crashed {len(crashes)} times; the last time: {crashes[-1].message}")
    client.set_flow_run_state(run.id, state, force=True)
    tell_of_failure(client.read_flow(run.flow_id), run, state)
