"""Several commands at once in one home: each does its own work, and nothing is done twice or removed."""

import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from faults.home import Home, require_same, wait_until
from headstream.tasks.errors import WorkError


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for a run, which must succeed."""
    _, err = process.communicate()
    assert process.returncode == 0, err


@contextmanager
def begun(home: Home) -> Iterator[Counter[str]]:
    """How often the folder of each artifact that is there in the end is begun in staging while the block runs."""
    counts: Counter[str] = Counter()
    ended = threading.Event()

    def look() -> None:
        before: set[str] = set()
        while not ended.wait(0.002):
            with suppress(FileNotFoundError):
                there = {path.name for path in (home.store.root / ".staging").iterdir()}
                counts.update(there - before)
                before = there

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield counts
    finally:
        ended.set()
        looking.join()
    for other in counts.keys() - {folder.name for folder in home.stagings(home.artifacts())}:
        del counts[other]  # locks, and what was put aside


def goes_on(home: Home) -> bool:
    """Whether a run of the home is in progress."""
    try:
        with home.store.exclusive_lock():
            return False
    except WorkError:
        return True


@pytest.fixture
def another(tmp_path, study) -> Path:
    """Another study of the same text, which has one model in common with the first."""
    file = tmp_path / "another.toml"
    text = study.read_text().replace('name = "faulty"', 'name = "another"').replace("[1, 2]", "[0, 1]")
    file.write_text(text)
    return file


@pytest.mark.fault("the same study twice at once", "each artifact is made once; the same rows and weights")
def test_the_same_study_twice(home: Home, reference, study):
    with begun(home) as times:
        for run in [home.start("run", str(study)) for _ in range(2)]:
            finish(run)
    assert len(times) == len(home.artifacts()) == len(reference.artifacts())
    assert set(times.values()) == {1}
    require_same(home, reference)


@pytest.mark.fault("two studies at once", "both succeed; a model that both have is made once; both are whole")
def test_two_studies(home: Home, reference, study, another):
    with begun(home) as times:
        for run in [home.start("run", str(file)) for file in (study, another)]:
            finish(run)
    assert len(times) == len(home.artifacts())
    assert set(times.values()) == {1}
    assert reference.results().items() <= home.results().items()
    assert home.rows("select study, n_models, n_failed from studies order by study") == [
        ("another", 2, 0),
        ("faulty", 2, 0),
    ]
    assert home.rows("select count(*) from models") == [(3,)]
    assert home.run("check").returncode == 0


@pytest.mark.fault("`gc --days 0` again and again beside a run", "it refuses while a run is in progress; the same rows")
def test_gc_beside_a_run(finished, reference, study, record_property):
    finished.forget("pruning")
    process = finished.start("run", str(study))
    wait_until(lambda: goes_on(finished), process)
    said = Counter()
    while process.poll() is None:
        done = finished.run("gc", "--days", "0")
        said[done.returncode, "while a run is in progress" in done.stderr] += 1
    finish(process)
    record_property("refused", f"refused {said[1, True]} times")
    assert said[1, True]
    assert set(said) <= {(1, True), (0, False)}
    require_same(finished, reference)


@pytest.mark.fault("`gc --days 0` after a run", "all that the last run needs is kept: the next one makes nothing")
def test_gc_after_a_run(finished, reference, study):
    finished.run_well("gc", "--days", "0")
    with begun(finished) as times:
        finish(finished.start("run", str(study)))
    assert not times
    require_same(finished, reference)


@pytest.mark.fault("`index`, `check`, `report` and `sql` beside a run", "all succeed, and so does the run")
def test_readers_beside_a_run(finished, reference, another, study):
    process = finished.start("run", str(another))
    while process.poll() is None:
        finished.run_well("index")
        finished.run_well("report", str(study))
        finished.run_well("sql", "select * from head_summary")
        checked = finished.run("check")
        # Between the record of a study and the index of it, the warehouse does lag behind.
        assert checked.returncode == 0 or "not: warehouse." in checked.stderr, checked.stdout + checked.stderr
    finish(process)
    assert reference.results().items() <= finished.results().items()
    assert not finished.store.quarantined()
    assert finished.rows("select count(*) from models") == [(3,)]
