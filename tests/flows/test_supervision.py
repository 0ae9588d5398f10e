"""What `headstream up` does about parts that end or hang, by a clock and a server that the test sets."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace

import httpx
import pytest
from prefect.client.schemas.objects import WorkPoolStatus

from headstream.flows import supervision
from headstream.flows.supervision import Supervisor

SILENCE = timedelta(seconds=90)


class Part:
    """A service that has ended, or not, and what was done to it."""

    def __init__(self, name: str) -> None:
        self.name, self.ended, self.done = name, False, []

    def has_ended(self) -> bool:
        return self.ended

    def restart(self) -> None:
        self.ended = False
        self.done.append("restart")

    def kill(self) -> None:
        self.ended = True
        self.done.append("kill")


class Installation:
    """A server and a worker under watch; each look is some seconds after the one before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.status, self.error = datetime(2026, 1, 1, tzinfo=UTC), WorkPoolStatus.READY, None
        self.server, self.worker, self.listening_since = Part("server"), Part("worker"), []
        self.told, self.said = [], []
        monkeypatch.setattr(supervision, "datetime", SimpleNamespace(now=lambda zone: self.now))
        monkeypatch.setattr(supervision, "get_client", self.client)
        monkeypatch.setattr(supervision, "recover_runs", lambda *arguments: self.listening_since.append(arguments[2]))
        monkeypatch.setattr(supervision, "notify_of_cancelled_runs", lambda *arguments: self.told.append(arguments[2:]))
        services = SimpleNamespace(started=[self.server, self.worker])
        self.supervisor = Supervisor(services, self.server, self.worker, lambda: None, self.said.append)

    @contextmanager
    def client(self, **_):
        if self.error:
            raise self.error
        yield SimpleNamespace(read_work_pool=lambda pool: SimpleNamespace(status=self.status))

    def look(self, seconds: float, times: int = 1) -> None:
        for _ in range(times):
            self.now += timedelta(seconds=seconds)
            self.supervisor.restart_what_ended()
            self.supervisor.check("pool", SILENCE)


@pytest.fixture
def installation(monkeypatch) -> Installation:
    return Installation(monkeypatch)


def test_a_part_that_ended_is_started_again_and_runs_get_time(installation):
    installation.look(5)
    installation.worker.ended = True
    installation.look(5)
    assert (installation.server.done, installation.worker.done) == ([], ["restart"])
    assert installation.listening_since[-1] == installation.now
    assert installation.said == ["the worker exited and is being restarted."]


def test_a_server_that_does_not_answer_for_long_is_started_again(installation):
    installation.error = httpx.ReadTimeout("")
    installation.look(5, times=18)
    assert installation.server.done == []
    installation.look(5, times=2)
    assert installation.server.done == ["kill", "restart"]
    assert installation.worker.done == []


def test_a_server_that_answers_now_and_then_goes_on(installation):
    for _ in range(5):
        installation.error = httpx.ReadTimeout("")
        installation.look(5, times=17)
        installation.error = None
        installation.look(5)
    assert installation.server.done == []
    assert installation.now - installation.listening_since[-1] == timedelta(seconds=5)  # it heard nothing of runs


def test_an_answer_that_is_an_error_is_an_answer(installation):
    response = httpx.Response(503, request=httpx.Request("GET", "http://server"))
    installation.error = httpx.HTTPStatusError("database is locked", request=response.request, response=response)
    installation.look(5, times=100)
    assert installation.server.done == []


def test_a_worker_without_a_sign_of_life_is_started_again_and_given_time(installation):
    installation.status = WorkPoolStatus.NOT_READY
    installation.look(5, times=36)
    assert installation.worker.done == []
    installation.look(5, times=2)
    assert installation.worker.done == ["kill", "restart"]
    installation.look(5, times=36)
    assert installation.worker.done == ["kill", "restart"]


@pytest.mark.parametrize("status", [WorkPoolStatus.READY, WorkPoolStatus.PAUSED])
def test_a_worker_that_is_there_or_paused_goes_on(status, installation):
    installation.status = status
    installation.look(5, times=100)
    assert installation.worker.done == []


def test_after_the_machine_slept_nothing_is_taken_for_dead(installation):
    installation.look(5)
    installation.status, installation.error = WorkPoolStatus.NOT_READY, httpx.ConnectTimeout("")
    installation.look(3600)
    installation.error = None
    installation.look(5)
    assert (installation.server.done, installation.worker.done) == ([], [])
    assert installation.now - installation.listening_since[-1] == timedelta(seconds=5)


def test_people_are_told_of_every_moment_once(installation):
    begun = installation.now
    installation.look(5, times=2)
    installation.error = httpx.ReadTimeout("")
    installation.look(5, times=2)
    installation.error = None
    installation.look(5)
    moments = [begun + timedelta(seconds=seconds) for seconds in (0, 5, 10, 25)]
    assert installation.told == list(pairwise(moments))
