"""What a run leaves for watchers: while it runs, when it ends well, when it fails, when it is killed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from waiting import until

from headstream.tasks import places
from headstream.tasks.watching import run_snapshots
from headstream.tasks.watching.run_snapshots import forget_run, running_studies, snapshot_of, snapshots_kept

ENDLESS = """
import signal
from headstream.tasks.watching.run_snapshots import snapshots_kept

with snapshots_kept("mine", lambda: {"models": 3}):
    signal.pause()
"""


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def edit(**changes) -> None:
    """Change what a run has left."""
    file = places.running_folder() / "mine.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.process
def test_a_run_is_seen_from_another_process_until_it_is_killed():
    assert running_studies() == []
    with subprocess.Popen([sys.executable, "-c", ENDLESS], cwd=places.ROOT) as run:
        until(running_studies)
        assert running_studies() == ["mine"]
        left = snapshot_of("mine")
        assert (left.progress, left.is_running, left.failure) == ({"models": 3}, True, None)
        run.send_signal(signal.SIGKILL)
    left = snapshot_of("mine")
    assert (left.progress, left.is_running, left.failure) == ({"models": 3}, False, None)
    assert running_studies() == []


def test_what_is_told_is_what_holds_now(monkeypatch):
    monkeypatch.setattr(run_snapshots, "WRITE_SECONDS", 0.01)
    far = {"step": 0}
    with snapshots_kept("mine", lambda: dict(far)):
        for step in (1, 2):
            far["step"] = step
            until(lambda step=step: (left := snapshot_of("mine")) and left.progress == {"step": step})


def test_of_a_run_that_ended_well_nothing_is_left():
    with snapshots_kept("mine", dict):
        pass
    assert snapshot_of("mine") is None
    assert list(places.running_folder().iterdir()) == []


def test_a_run_that_failed_says_why_until_it_is_forgotten():
    with pytest.raises(ValueError, match="too small"), snapshots_kept("mine", dict):
        raise ValueError("too small")
    left = snapshot_of("mine")
    assert (left.is_running, left.failure) == (False, "too small")
    forget_run("mine")
    assert snapshot_of("mine") is None


def test_a_run_goes_on_where_nothing_can_be_left(home):
    home.write_text("no folder")
    with snapshots_kept("mine", dict):
        done = True
    assert done
    assert running_studies() == []


def test_no_reader_sees_half_of_it(monkeypatch):
    monkeypatch.setattr(run_snapshots, "WRITE_SECONDS", 0.0)
    with snapshots_kept("mine", lambda: {"long": "x" * 100_000}):
        until(running_studies)
        assert all(snapshot_of("mine") for _ in range(300))


def test_another_process_of_the_same_number_is_not_the_run():
    with snapshots_kept("mine", dict):
        until(running_studies)
        edit(began=time.time() - 1e6)
        assert not snapshot_of("mine").is_running


@pytest.mark.parametrize(("silent", "is_running"), [(0, True), (3600, False)])
def test_a_run_on_another_machine_goes_on_while_it_writes(silent, is_running):
    with pytest.raises(ValueError, match="x"), snapshots_kept("mine", dict):
        raise ValueError("x")
    edit(failure=None, machine="elsewhere")
    os.utime(places.running_folder() / "mine.json", (time.time() - silent,) * 2)
    assert snapshot_of("mine").is_running == is_running


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "7"])
def test_what_is_no_snapshot_is_none(content):
    places.running_folder().mkdir(parents=True)
    (places.running_folder() / "mine.json").write_text(content)
    assert snapshot_of("mine") is None
    assert running_studies() == []
