"""Runs that died, against a server that only remembers what it is told."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Cancelled, Crashed, Pending, Running

from headstream.flows import recovery
from headstream.flows.recovery import CANCELLED_BY_LIMIT, MAX_CRASHES, SETTLED, notify_of_cancelled_runs, recover_runs
from headstream.flows.up_command import SILENCE

LONG_AGO = datetime.now(UTC) - timedelta(hours=1)


class Server:
    """What `recover_runs` asks of Prefect's client: one run, the states it was in, and whether it is heard."""

    def __init__(self, *states: State, heard: bool = False) -> None:
        self.states, self.heard = list(states), heard

    def read_flow_runs(self, **_):
        return [SimpleNamespace(id="1", name="quick", flow_id="2", state=self.states[-1])]

    def read_flow_run_states(self, _):
        return self.states

    def read_events(self, *_, **__):
        return SimpleNamespace(events=["heartbeat"] if self.heard else [])

    def read_flow(self, _):
        return SimpleNamespace(name="study")

    def set_flow_run_state(self, _, state, force):
        assert force
        self.states.append(state)


@pytest.fixture(autouse=True)
def told(monkeypatch) -> list[tuple]:
    """Whom people were told of."""
    notices: list[tuple] = []
    monkeypatch.setattr(recovery, "notify_of_failure", lambda flow, run, state: notices.append((flow.name, state.name)))
    return notices


def ago(state: State, seconds: float) -> State:
    return state.model_copy(update={"timestamp": datetime.now(UTC) - timedelta(seconds=seconds)})


def names(server: Server, listening_since: datetime = LONG_AGO) -> list[str | None]:
    """The states of the run after a look at it."""
    recover_runs(server, "headstream", listening_since, SILENCE)  # type: ignore[arg-type]
    return [state.name for state in server.states]


@pytest.mark.parametrize("state", [Running(), Pending()])
def test_a_silent_run_starts_again(state, told):
    assert names(Server(ago(state, SILENCE.seconds + 1)))[1:] == ["Crashed", "Scheduled"]
    assert not told


def test_a_run_that_is_heard_or_has_just_begun_goes_on():
    assert names(Server(ago(Running(), 10_000), heard=True)) == ["Running"]
    assert names(Server(ago(Running(), SILENCE.seconds - 1))) == ["Running"]


def test_a_server_that_could_not_listen_gives_runs_time():
    now = datetime.now(UTC)
    assert names(Server(ago(Running(), 10_000)), now - SILENCE + timedelta(seconds=1)) == ["Running"]
    assert names(Server(ago(Running(), 10_000)), now - SILENCE - timedelta(seconds=1))[1:] == ["Crashed", "Scheduled"]


def test_a_crash_is_left_alone_until_its_worker_has_reported_it_twice():
    assert names(Server(ago(Crashed(), SETTLED.seconds - 1))) == ["Crashed"]
    assert names(Server(ago(Crashed(), SETTLED.seconds + 1))) == ["Crashed", "Scheduled"]


def test_the_last_crash_is_a_failure_that_people_are_told_of_once(told):
    crashes = [ago(Crashed(message=f"number {n}"), 60) for n in range(MAX_CRASHES)]
    server = Server(*crashes)
    assert names(server)[-1] == "Failed"
    assert server.states[-1].message == "crashed 3 times; the last time: number 2"
    assert told == [("study", "Failed")]


def test_a_run_whose_last_crash_is_silence_fails(told):
    crashes = [ago(Crashed(), 900) for _ in range(MAX_CRASHES - 1)]
    assert names(Server(*crashes, ago(Running(), SILENCE.seconds + 1)))[-2:] == ["Crashed", "Failed"]
    assert len(told) == 1


@pytest.mark.parametrize(
    ("message", "seconds", "n_told"),
    [
        (CANCELLED_BY_LIMIT, 30, 1),
        (CANCELLED_BY_LIMIT, 90, 0),
        (CANCELLED_BY_LIMIT, 5, 0),
        ("somebody cancelled it", 30, 0),
    ],
)
def test_people_are_told_of_a_run_that_was_turned_away(message, seconds, n_told, told):
    server, now = Server(ago(Cancelled(message=message), seconds)), datetime.now(UTC)
    notify_of_cancelled_runs(server, "headstream", now - timedelta(minutes=1), now - timedelta(seconds=10))  # type: ignore[arg-type]
    assert told == [("study", "Cancelled")] * n_told
