"""`headstream up`: its parts killed, all of it killed, and its schedule."""

import itertools
import signal
import time
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psutil
import pytest
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.schedules import CronSchedule
from tiny import tiny_text

from faults.installation import Installation, wait_until

RECOVERY_SECONDS = 180
seeds = itertools.count()


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Iterator[Installation]:
    installation = Installation(tmp_path_factory.mktemp("installation"), tiny_text())
    installation.start()
    yield installation
    installation.up.terminate()
    installation.up.wait(60)


@pytest.fixture
def installation(kept) -> Installation:
    """An installation that is up and idle, shared by the tests."""
    if kept.up.poll() is not None:
        kept.start()
        kept.cancel_all()
    return kept


@pytest.fixture
def unseen(study) -> dict[str, Any]:
    """The study under another name, with models that nobody has trained, and little to measure."""
    content, seed = tomllib.loads(study.read_text()), next(seeds)
    content["analysis"] = {"stages": ["behaviour"], "behaviour": content["analysis"]["behaviour"]}
    content["training"] |= {"seed": seed, "tokens": 200_000}
    return content | {"name": f"upset-{seed}"}


def require_recovery(installation: Installation, study: dict[str, Any], run: UUID) -> str:
    """Wait until a run has completed and its report has been published once, and say how long it took."""
    seconds = wait_until(lambda: installation.state(run) in ("Completed", "Failed", "Cancelled"))
    states = installation.states(run)
    assert states[-1] == "Completed"
    assert states.count("Running") == states.count("Scheduled") == states.count("Crashed") + 1
    reports = f"report of {study['name']}"
    wait_until(lambda: states_of(installation.runs(reports)) == ["Completed"])
    assert seconds < RECOVERY_SECONDS
    return f"completed after {seconds:.0f} s"


def require_gone(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=60)
    assert not [process.cmdline() for process in alive]


@pytest.mark.fault("kill -9 of {parts}", "the study completes within 3 minutes; its report is published once")
@pytest.mark.parametrize("parts", ["flow", "worker", "server", "worker and server", "worker, server and flow"])
def test_parts_are_killed(parts, installation, unseen, record_property):
    run = installation.begin(unseen)
    installation.kill(*(part for part in ("worker", "server", "flow") if part in parts))
    record_property("seen", require_recovery(installation, unseen, run))
    assert installation.states(run).count("Crashed") == ("flow" in parts)


@pytest.mark.fault("kill -9 of a flow, three times", "the run fails, says why, and people are notified")
def test_a_run_dies_again_and_again(installation, unseen):
    run = installation.begin(unseen)
    for n_runs in range(1, 4):
        wait_until(lambda n=n_runs: installation.states(run).count("Running") == n)
        installation.kill("flow")
    wait_until(lambda: installation.state(run) == "Failed")
    with installation.client() as client:
        assert client.read_flow_run(run).state.message.startswith("crashed 3 times; the last time: Process exited")
    wait_until(lambda: installation.was_told_of(run))


@pytest.mark.fault("kill -9 of `headstream up`, started again", "no process is left; the study completes by itself")
def test_up_is_killed(installation, unseen, record_property):
    run = installation.begin(unseen)
    processes = installation.processes()
    installation.up.kill()
    installation.up.wait()
    require_gone(processes)
    installation.start()
    record_property("seen", require_recovery(installation, unseen, run))


@pytest.mark.fault("all processes stopped for 100 s, as if the machine slept", "the study goes on, and starts once")
def test_all_sleep(installation, unseen, record_property):
    run = installation.begin(unseen)
    processes = installation.processes()
    for process in processes:
        process.suspend()
    time.sleep(100)
    for process in processes:
        process.resume()
    record_property("seen", require_recovery(installation, unseen, run))
    assert "Crashed" not in installation.states(run)


@pytest.mark.fault("the {part} hangs", "it is started again; the study completes; its report is published once")
@pytest.mark.parametrize("part", ["server", "worker"])
def test_a_part_hangs(part, installation, unseen, record_property):
    run = installation.begin(unseen)
    hanging = installation.processes(part)
    for process in hanging:
        process.suspend()
    seconds = wait_until(lambda: not any(process.is_running() for process in hanging))
    require_recovery(installation, unseen, run)
    record_property("seen", f"started again after {seconds:.0f} s")
    assert "Crashed" not in installation.states(run)


@pytest.mark.fault("{signals} while a study runs", "`headstream up` ends with exit code 0, and no process is left")
@pytest.mark.parametrize("signals", ["SIGTERM", "SIGINT, SIGINT", "SIGHUP", "kill -9 of the guard, SIGTERM"])
def test_up_is_asked_to_stop(signals, installation, unseen, record_property):
    installation.begin(unseen)
    processes = installation.processes()
    for name in signals.split(", "):
        if name in signal.Signals.__members__:
            installation.up.send_signal(signal.Signals[name])
        else:
            installation.kill("guard")
    record_property("seen", f"ended after {wait_until(lambda: installation.up.poll() is not None):.0f} s")
    require_gone(processes)
    assert installation.up.returncode == 0


@pytest.mark.fault("a study is due while another runs", "it is cancelled, and people are notified; the other completes")
def test_a_run_is_turned_away(installation, unseen):
    run = installation.begin(unseen)
    other = installation.ask_for(unseen)
    wait_until(lambda: installation.state(other) == "Cancelled")
    wait_until(lambda: installation.was_told_of(other))
    require_recovery(installation, unseen, run)
    assert not installation.was_told_of(run)


@pytest.mark.fault("`headstream up` ended and started again", "schedules that people added or paused stay as they were")
def test_schedules_stay(installation):
    with installation.client() as client:
        deployment = client.read_deployment_by_name("study/nightly")
        (own,) = (schedule for schedule in deployment.schedules if schedule.slug == "nightly")
        client.update_deployment_schedule(deployment.id, own.id, active=False)
        client.pause_deployment(client.read_deployment_by_name("check/weekly").id)
        client.create_deployment_schedules(deployment.id, [(CronSchedule(cron="1 2 3 4 *", timezone="UTC"), True)])
    installation.up.terminate()
    installation.up.wait()
    installation.start()
    with installation.client() as client:
        schedules = client.read_deployment_by_name("study/nightly").schedules
        assert client.read_deployment_by_name("check/weekly").paused
    assert {(own.schedule.cron, False), ("1 2 3 4 *", True)} <= {(s.schedule.cron, s.active) for s in schedules}


@pytest.mark.fault(
    "a cron schedule that is due soon, twice", "both run; each publishes a page, the second what has changed"
)
def test_the_schedule_runs(installation, unseen):
    name = unseen["name"]
    for seed in (1000, 1001):
        at = datetime.now(UTC) + timedelta(minutes=2)
        study = unseen | {"training": unseen["training"] | {"seed": seed}}
        schedule = CronSchedule(cron=f"{at.minute} {at.hour} * * *", timezone="UTC")
        with installation.client() as client:
            deployment = client.read_deployment_by_name("study/nightly").id
            client.create_deployment_schedules(deployment, [(schedule, True)], parameters={"study": study})
        n_reports = seed - 999
        wait_until(lambda n=n_reports: states_of(installation.runs(f"report of {name}")) == ["Completed"] * n)
    with installation.client() as client:
        found = client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(like_=f"%-{name}")))
    assert {artifact.key.split("-")[0] for artifact in found} == {"report"}
    pages = [artifact.data for artifact in sorted(found, key=lambda artifact: artifact.created)]
    assert ["No earlier run had other results." in page for page in pages] == [True, False]
    assert "since the run of" in pages[1]


def states_of(runs: list[FlowRun]) -> list[str | None]:
    return [run.state_name for run in runs]
