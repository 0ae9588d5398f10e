"""The clock is set while nothing else changes: results, durations and which run is the last do not follow it."""

import os
import shutil
import struct
import subprocess
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from faults.home import Home, kill, require_same, wait_until

YEAR = 365 * 86400
LONG = 3600  # seconds; nothing in these runs takes an hour


@dataclass(frozen=True)
class Clock:
    """A clock that processes with this environment go by: the real time, shifted by seconds that a file holds."""

    environment: dict[str, str]
    file: Path

    def shift(self, seconds: int) -> None:
        with self.file.open("r+b") as file:  # it is mapped into the processes, so it must stay the same file
            file.write(struct.pack("=q", seconds))

    def set(self, moment: datetime) -> None:
        self.shift(round(moment.timestamp() - time.time()))


@pytest.fixture(scope="session")
def preloaded(tmp_path_factory) -> Path:
    """The library that shifts the clock of a process."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("clock") / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    return library


@pytest.fixture
def clock(tmp_path, preloaded) -> Clock:
    file = tmp_path / "shift"
    file.write_bytes(bytes(8))
    return Clock({"LD_PRELOAD": str(preloaded), "CLOCK_SHIFT": str(file)}, file)


def under(clock: Clock, home: Home, **environment: str) -> Home:
    """The home, with processes that go by this clock."""
    return replace(home, environment={**home.environment, **clock.environment, **environment})


def asks(study: Path, question: str, folder: Path) -> Path:
    """A copy of the study with another question, which needs a new record and nothing else."""
    file = folder / f"{question}.toml"
    file.write_text(study.read_text().replace("Does it come out the same after a fault?", question))
    return file


def require_sane_durations(home: Home) -> None:
    """Every number of seconds in the warehouse is that of a run which took minutes at most."""
    with_seconds = "select table_name from duckdb_columns() semi join duckdb_tables() using (table_name)"
    tables = [table for (table,) in home.rows(f"{with_seconds} where column_name = 'seconds'")]
    assert {*tables} >= {"artifacts", "models", "training"}
    for table in tables:
        assert home.rows(f"select * from {table} where seconds not between 0 and {LONG}") == [], table
    odd = f"select * from studies where date_diff('second', started_at, finished_at) not between 0 and {LONG}"
    assert home.rows(odd) == []


@pytest.mark.fault("the clock is set by {years:+} year between runs", "`sql` and `report` show the last run")
@pytest.mark.parametrize("years", [-1, 1])
def test_set_between_runs(years, finished, reference, study, clock, tmp_path):
    clock.shift(years * YEAR)
    home = under(clock, finished)
    for question in ("Is this the first run", "Is this the last run"):
        home.run_well("run", "--replace", str(asks(study, question, tmp_path)))
    clock.shift(0)  # right again: the last run is one of another year
    assert home.rows("select question from studies") == [("Is this the last run",)]
    report = Path(home.run_well("report", str(study)).strip()).read_text()
    assert "Is this the last run" in report
    assert "Is this the first run" not in report
    assert len(home.artifacts("study")) == 3
    require_sane_durations(home)
    require_same(home, reference)


@pytest.mark.fault(
    "the clock is set back by a year during a run, then forward by two", "the same rows and weights; no absurd duration"
)
def test_set_during_a_run(home: Home, reference, study, clock):
    home = under(clock, home)
    process = home.start("run", str(study))
    wait_until(lambda: home.artifacts("training"), process)
    clock.shift(-YEAR)
    wait_until(lambda: home.artifacts("behaviour"), process)
    clock.shift(YEAR)
    _, err = process.communicate()
    assert process.returncode == 0, err
    require_sane_durations(home)
    require_same(home, reference)


@pytest.mark.fault("summer time {change} during a run", "the same rows and weights; no absurd duration")
@pytest.mark.parametrize(("change", "month", "day"), [("begins", 3, 29), ("ends", 10, 25)])
def test_summer_time(change, month, day, finished, reference, study, clock):
    finished.forget("importance", "pruning")
    home = under(clock, finished, TZ="Europe/Berlin")
    change_at = datetime(2026, month, day, 1, tzinfo=UTC)
    clock.set(change_at.replace(hour=0, minute=59, second=50))
    process = home.start("run", str(study))
    wait_until(lambda: home.artifacts("pruning"), process)
    clock.set(change_at)
    _, err = process.communicate()
    assert process.returncode == 0, err
    ((ended,),) = home.rows("select finished_at from studies")
    assert ended.replace(tzinfo=UTC) > change_at
    require_sane_durations(home)
    require_same(home, reference)


@pytest.mark.fault("the clock is set forward by a year, then `gc`", "all that the last run needs is kept")
def test_gc_after_the_clock_was_set(finished, reference, study, clock):
    clock.shift(YEAR)
    home = under(clock, finished)
    before = home.results()
    home.run_well("gc")
    assert home.results() == before
    home.run_well("run", str(study))
    require_same(home, reference)


@pytest.mark.fault(
    "the clock is set forward by a year after kill -9 of a training", "runs of other studies leave its work alone"
)
def test_interrupted_work_outlives_the_clock(finished, reference, study, clock, tmp_path):
    finished.forget("training")
    process = finished.start("run", str(study))
    wanted = finished.stagings(reference.artifacts("training"))
    wait_until(lambda: all((folder / "checkpoints").exists() for folder in wanted), process)
    kill(process)
    clock.shift(YEAR)
    other = tmp_path / "other.toml"
    other.write_text(study.read_text().replace('name = "faulty"', 'name = "other"').replace("[1, 2]", "[0]"))
    under(clock, finished).run_well("run", str(other))
    assert all((folder / "checkpoints").exists() for folder in wanted)
