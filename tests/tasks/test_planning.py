"""What a run of a study would do, and whether the disk has room for it, before anything is there."""

import shutil
from collections import namedtuple

import pytest
from tiny import tiny_text

from tasks import planning
from tasks.errors import WorkError
from tasks.planning import PlannedStep, plan_steps, require_space
from tasks.study.schema import parse_study

Usage = namedtuple("Usage", "total used free")
STEPS = [
    PlannedStep("corpus", "documents", True, "made"),
    PlannedStep("training", "seed=0", False, "not made yet", bytes=40_000_000),
    PlannedStep("behaviour", "seed=0", False, "its model will be trained first", bytes=2_000_000),
]
NEEDED = 42_000_000 + 2 * planning.BYTES_INDEXED_PER_MODEL


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path / "not" / "made" / "yet"))


def with_free(monkeypatch, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 10**9 - free, free))


def test_a_study_that_fits_may_run(monkeypatch):
    with_free(monkeypatch, NEEDED)
    require_space(STEPS)


def test_one_that_does_not_is_refused_with_both_figures(monkeypatch):
    with_free(monkeypatch, NEEDED - 1)
    with pytest.raises(WorkError, match=r"about 44 MB, got 44 MB free. Free disk space"):
        require_space(STEPS)


def test_one_that_is_finished_needs_no_room(monkeypatch):
    with_free(monkeypatch, 0)
    require_space(STEPS[:1])


def test_every_step_is_planned_in_the_order_of_the_run():
    content = {"name": "s", "corpus": {"paths": [str(tiny_text())]}, "analysis": {"stages": ["behaviour"]}}
    steps = plan_steps(parse_study("s", content | {"costs": {"n_heads": [1, 2]}}))
    assert [step.step for step in steps] == ["corpus", "tokens", "costs", "training", "behaviour"]
    assert not any(step.done for step in steps)
    assert all(step.seconds > 0 and step.bytes > 0 for step in steps)
    assert "costs" not in [step.step for step in plan_steps(parse_study("s", content))]
