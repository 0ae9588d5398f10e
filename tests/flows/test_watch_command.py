"""`watch` as a user meets it: nothing runs, something runs, it ends well or badly, several run, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from small_study import small_study
from terminals import Terminal
from test_command_line import call
from test_own_studies import put_record
from test_study_progress import planned
from waiting import until

from headstream.flows.followed_runs import shown_and_kept
from headstream.flows.study_progress import StudyProgress
from headstream.tasks import places
from headstream.tasks.graph.planning import plan_artifacts
from headstream.tasks.progress import Event, publish
from headstream.tasks.studies.known_studies import find_study
from headstream.tasks.studies.own_names import reserve_name
from headstream.tasks.study.schema import read_study
from headstream.tasks.watching.run_snapshots import running_studies, snapshot_of

pytestmark = pytest.mark.process

HEADSTREAM = str(Path(sys.executable).parent / "headstream")
LABEL = "n_layers=2"
RUN = """
import json, signal, sys
from headstream.tasks.watching.run_snapshots import snapshots_kept

with snapshots_kept(sys.argv[1], lambda: json.loads(sys.argv[2])):
    if not sys.stdin.readline():
        raise ValueError("a disk is full")
"""


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "400")
    return tmp_path / "home"


@pytest.fixture
def mine(tmp_path):
    """A study of one's own that was to run."""
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\n[corpus]\npaths = ["mine.toml"]\n[grid]\nn_layers = [2]\n')
    reserve_name(read_study(find_study(str(path))), find_study(str(path)))


@pytest.fixture
def run(mine):
    """Starts what leaves what a run does: a model at 35 %, of which it keeps 20 %."""
    begun = []

    def start(study: str = "mine") -> subprocess.Popen:
        progress = StudyProgress(study, [planned(s, LABEL, 100.0) for s in ("training", "behaviour")], 2)
        progress.hear(Event("training", LABEL, 0.0))
        progress.hear(Event("training", LABEL, 0.35, "loss 3.100 nats", 0.2))
        command = [sys.executable, "-c", RUN, study, json.dumps(progress.snapshot())]
        begun.append(subprocess.Popen(command, cwd=places.ROOT, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL))
        until(lambda: study in running_studies())
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.wait()
        process.stdin.close()


def end_well(run: subprocess.Popen) -> None:
    run.stdin.write(b"well\n")
    run.stdin.flush()
    assert run.wait() == 0


def watching(home, *arguments: str) -> subprocess.Popen:
    environment = {**os.environ, "HEADSTREAM_HOME": str(home), "TMPDIR": str(home.parent)}
    return subprocess.Popen([HEADSTREAM, "watch", *arguments], env=environment, stdout=subprocess.PIPE, text=True)


def test_when_nothing_runs_that_is_said(mine, monkeypatch, capsys):
    code, out, err = call(monkeypatch, capsys, "watch")
    assert (code, out) == (2, "")
    assert err.startswith("headstream: no study is running. Run one: `headstream run")
    code, _, err = call(monkeypatch, capsys, "watch", "mine")
    assert code == 2
    assert "mine is not running: not run. Run it: `headstream run mine`" in err
    assert call(monkeypatch, capsys, "watch", "nobodys")[0] == 2


def test_a_study_that_is_done_is_done(mine, monkeypatch, capsys):
    put_record(read_study(find_study("mine")))
    report = places.report_folder("mine") / "report.md"
    assert call(monkeypatch, capsys, "watch", "mine") == (0, f"mine is done.\nReport: {report}\n", "")


def test_how_a_run_ended_badly_is_said(run, monkeypatch, capsys):
    stopped = run()
    stopped.kill()
    stopped.wait()
    code, out, _ = call(monkeypatch, capsys, "watch", "mine")
    assert (code, out) == (
        1,
        "mine: its run was stopped: 1 model at 20 %; `headstream run mine` continues from there.\n",
    )
    failed = run()
    failed.stdin.close()
    failed.wait()
    code, out, _ = call(monkeypatch, capsys, "watch", "mine")
    assert (code, out) == (1, "mine: its run failed: a disk is full\n")


def test_of_several_one_must_be_named(run, monkeypatch, capsys):
    run("mine")
    run("other")
    code, _, err = call(monkeypatch, capsys, "watch")
    assert code == 2
    assert "several studies are running: mine and other. Name one: `headstream watch mine`" in err


def test_a_run_is_waited_for_and_told_to_a_file_until_it_ends(run, home):
    with watching(home, "--wait", "--serve") as watch:
        assert watch.stdout.readline().startswith("Waiting for a run of a study.")
        going = run()
        address = watch.stdout.readline().split()[1]
        assert watch.stdout.readline().split(" ", 1)[1].startswith("mine: 0 of 1 models done, about ")
        assert watch.stdout.readline().split(" ", 1)[1] == f"{LABEL}: training 35 %, loss 3.100 nats\n"
        assert "No checkpoint has been measured yet" in urlopen(address).read().decode()
        places.report_folder("mine").mkdir(parents=True)
        (places.report_folder("mine") / "explorer.html").write_text("the whole explorer")
        end_well(going)
        assert watch.stdout.readline() == "mine is done.\n"
        assert watch.stdout.readline() == f"Report: {places.report_folder('mine') / 'report.md'}\n"
        assert watch.stdout.readline() == f"Explorer: {address}, until Ctrl-C\n"
        assert urlopen(address).read() == b"the whole explorer"
        assert urlopen(f"{address}version").read() == b"done"
        watch.send_signal(signal.SIGTERM)
        assert watch.stdout.read() == ""
    assert watch.returncode == 128 + signal.SIGTERM


def test_a_run_that_is_killed_ends_what_watches_it(run, home):
    going = run()
    with watching(home, "mine") as watch:
        watch.stdout.readline()
        going.kill()
        assert "mine: its run was stopped: 1 model at 20 %; `headstream run mine` continues" in watch.stdout.read()
    assert watch.returncode == 1


def test_it_ends_quietly_when_nobody_reads_any_more(run, home):
    going = run()
    environment = {**os.environ, "HEADSTREAM_HOME": str(home)}
    watch = subprocess.Popen(
        [HEADSTREAM, "watch", "mine"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    watch.stdout.readline()
    watch.stdout.close()
    going.kill()
    assert watch.stderr.read() == b""
    watch.stderr.close()
    assert watch.wait() == 128 + signal.SIGPIPE


def test_ctrl_c_ends_the_picture_and_not_the_run(run, home):
    going = run()
    environment = {**os.environ, "HEADSTREAM_HOME": str(home), "TMPDIR": str(home.parent)}
    terminal = Terminal([HEADSTREAM, "watch", "mine"], environment)
    terminal.wait_for("no checkpoint measured yet")
    terminal.interrupt("Ctrl-C")
    assert terminal.ended() == 130
    assert "Traceback" not in terminal.shown
    assert terminal.shown.rfind("\x1b[?25h") > terminal.shown.rfind("\x1b[?25l")  # the cursor is there again
    assert list(home.parent.glob("headstream-*")) == []
    assert going.poll() is None
    assert running_studies() == ["mine"]


def test_a_deployed_run_can_be_watched_too():
    study = small_study()
    with shown_and_kept(study.name, plan_artifacts(study), jobs=1):
        publish(Event("training", "n_layers=1", 0.4, key="k"))
        until(lambda: (left := snapshot_of("tiny")) and _fraction(left.progress) == 0.4)
    assert snapshot_of("tiny") is None


def _fraction(told: dict) -> float:
    return StudyProgress.of_snapshot(told).models["n_layers=1"].fraction
