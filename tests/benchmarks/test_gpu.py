"""`make gpu` where there is no GPU: every section runs on the CPU, tiny, and what fails is told beside what doesn't."""

import pandas as pd
import pytest
import torch
from little_analysis import SHORTER_CURVES
from tiny import tiny_tokens

from benchmarks import gpu
from benchmarks.analyses import Subject
from benchmarks.gpu import Outcome, run_apart, table
from benchmarks.gpu_sections import SECTIONS, Bench, Row, Sizes, furthest_apart
from headstream.models.architecture import Architecture
from headstream.tasks.training.loop import TrainingRun

SHAPE = {"n_heads": 2, "d_model": 16, "n_ctx": 24}
TINY = Sizes(
    small=Architecture(n_layers=2, **SHAPE),
    large=Architecture(n_layers=1, **SHAPE),
    large_batch=2,
    compared_steps=3,
    resumed_steps=30,
    tokens=24 * 16 * 30,
    warm_steps=2,
    timed_steps=2,
    peak=16,
    compiles=False,
    analysis=SHORTER_CURVES,
    timed_analysis=SHORTER_CURVES,
    subject=Subject(n_layers=1, d_head=8, vocabulary=270, feed_forward="gelu", **SHAPE),
)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Tensors are so small that two threads would wait for each other most of the time."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu")
    (folder / "tokens").symlink_to(tiny_tokens())
    return Bench("cpu", folder, TINY)


OTHERS = [section for section in SECTIONS if section != "two_share"]


@pytest.mark.parametrize("section", [*OTHERS, pytest.param("two_share", marks=pytest.mark.process)])
def test_sections_run(section, bench):
    told: list[Row] = []
    SECTIONS[section](bench, told.append)
    assert told
    assert [row for row in told if row.holds is False and "fastest" not in row.what] == []  # that is chance, so tiny


def test_other_losses_are_not_taken_for_the_same(bench, monkeypatch):
    rates = iter((1.0, 3.0))
    config = Bench.config
    monkeypatch.setattr(
        Bench, "config", lambda self, n: config(self, n).model_copy(update={"learning_rate": next(rates)})
    )
    told: list[Row] = []
    SECTIONS["losses_agree"](bench, told.append)
    assert [row.holds for row in told] == [False]


@pytest.mark.parametrize("place", range(TINY.compared_steps))
def test_a_loss_that_is_no_number_is_not_the_same(bench, monkeypatch, place):
    take_step, taken = TrainingRun.take_step, []

    def broken_once(run):
        loss, norm = take_step(run)
        taken.append(loss)
        return (loss * torch.nan if len(taken) == TINY.compared_steps + place + 1 else loss), norm

    monkeypatch.setattr(TrainingRun, "take_step", broken_once)
    told: list[Row] = []
    SECTIONS["losses_agree"](bench, told.append)
    assert [row.holds for row in told] == [False]


def test_a_score_that_is_no_number_is_furthest_apart():
    here = pd.DataFrame({"a": [1.0, float("nan"), 20.0], "b": [0.5, 0.5, 0.5]})
    assert furthest_apart(here, here) == ("a", 0.0)
    assert furthest_apart(here, here * 1.1)[0] == "a"
    assert furthest_apart(here, here.assign(b=[0.5, float("nan"), 0.5])) == ("b", float("inf"))
    assert furthest_apart(here, here.fillna(0.0)) == ("a", float("inf"))


@pytest.mark.process
def test_a_section_that_fails_is_told_with_what_it_found_and_why(tmp_path):
    outcome = run_apart("small_is_fast", "nowhere", tmp_path, 60)
    assert not outcome.holds
    assert "nowhere" in outcome.failure
    late = run_apart("small_is_fast", "cpu", tmp_path, 0.1)
    assert late.failure == "not done after 0 s"
    lines = table([Outcome("first", [Row("a", "1", "2", False), Row("b", "3")], "it | broke", 1.0)]).splitlines()
    assert lines[2:] == [
        "| a | 1 | 2 | **missed** |", "| b | 3 |  |  |", "| first | it \\| broke | runs | **failed** |"
    ]  # fmt: skip


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys, monkeypatch):
    assert gpu.main() == 2
    assert capsys.readouterr().err.count("\n") == 1
