"""`make gpu` where there is no GPU: every section runs on the CPU, tiny, and what fails is told beside what doesn't."""

import pytest
import torch
from little_analysis import SHORTER_CURVES
from tiny import tiny_tokens

from benchmarks import gpu
from benchmarks.analyses import Subject
from benchmarks.gpu import Outcome, run_apart, table
from benchmarks.gpu_sections import SECTIONS, WAYS, Bench, Row, Sizes
from models.architecture import Architecture
from models.attention_heads import Attention

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


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu")
    (folder / "tokens").symlink_to(tiny_tokens())
    return Bench("cpu", folder, TINY)


@pytest.mark.parametrize("section", SECTIONS)
def test_sections_run(section, bench):
    told: list[Row] = []
    SECTIONS[section](bench, told.append)
    assert told
    slow = "fastest"  # of so tiny a model is chance
    assert [row for row in told if row.holds is False and slow not in row.what] == []


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_ways_to_attend_are_the_same_attention():
    attention = Attention(TINY.large, 2).double()
    with torch.no_grad():
        torch.nn.init.normal_(attention.position_bias)
        q, k, v = torch.randn(3, 3, 2, 24, 16, dtype=torch.float64)
        fused, *others = (way(q, k, v, attention) for way in WAYS.values())
    assert len(others) == 2
    for other in others:
        torch.testing.assert_close(other, fused)


def test_other_losses_are_not_taken_for_the_same(bench, monkeypatch):
    rates = iter((1.0, 3.0))
    config = Bench.config
    monkeypatch.setattr(
        Bench, "config", lambda self, n: config(self, n).model_copy(update={"learning_rate": next(rates)})
    )
    told: list[Row] = []
    SECTIONS["losses_agree"](bench, told.append)
    assert [row.holds for row in told] == [False]


def test_a_section_that_fails_is_told_with_what_it_found_and_why(tmp_path):
    outcome = run_apart("attention_is_fused", "nowhere", tmp_path, 60)
    assert not outcome.holds
    assert "nowhere" in outcome.failure
    late = run_apart("attention_is_fused", "cpu", tmp_path, 0.1)
    assert late.failure == "not done after 0 s"
    lines = table([Outcome("first", [Row("a", "1", "2", False), Row("b", "3")], "it | broke", 1.0)]).splitlines()
    assert lines[2:] == [
        "| a | 1 | 2 | **missed** |", "| b | 3 |  |  |", "| first | it \\| broke | runs | **failed** |"
    ]  # fmt: skip


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys, monkeypatch):
    assert gpu.main() == 2
    assert capsys.readouterr().err.count("\n") == 1
