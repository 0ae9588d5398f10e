"""Estimates against what was measured on 2026-11-29, one stage a core, on a processor without bfloat16."""

import pandas as pd
import pytest

from headstream.models.architecture import Architecture
from headstream.models.flops import forward_flops
from headstream.tasks.measuring.budgets import windows_within_budget
from headstream.tasks.studies.known_studies import find_study
from headstream.tasks.study.analyses import ANALYSES
from headstream.tasks.study.analyses.prompt_circuits_config import PromptCircuitsConfig
from headstream.tasks.study.analyses.prompts_config import PromptsConfig
from headstream.tasks.study.analysis_config import AnalysisConfig
from headstream.tasks.study.prompt_circuits_work import count_work
from headstream.tasks.study.schema import read_study
from headstream.tasks.study.stage import CountedWork, Size
from headstream.tasks.study.stages import IMPORT

QUICK = Architecture(n_layers=2, n_heads=4, d_model=128, n_ctx=128)
DEEP = Architecture(n_layers=6, n_heads=8, d_model=256, n_ctx=128, normalization="layernorm", feed_forward="gelu")
MEASURED = {
    "quick": {
        "behaviour": 8.8, "weight-circuits": 2.2, "activation-circuits": 2.3, "importance": 4.9, "pruning": 13.7,
        "redundancy": 3.0, "probes": 12.7,
    },
    "deep": {
        "behaviour": 20.3, "weight-circuits": 8.1, "activation-circuits": 134.9, "importance": 151.3, "pruning": 344.7,
        "redundancy": 52.5, "probes": 45.4,
    },
}  # fmt: skip


def size(architecture: Architecture, d_vocab: int, n_checkpoints: int, **options) -> Size:
    flops = forward_flops(architecture, d_vocab, architecture.n_ctx)
    return Size(pass_flops=flops, n_checkpoints=n_checkpoints, **options)


def seconds_of_analyses(*about, **options) -> dict[str, float]:
    return {name: stage.cost.seconds_for(size(*about, **options)) for name, stage in ANALYSES.items()}


ESTIMATED = {"quick": seconds_of_analyses(QUICK, 512, 24), "deep": seconds_of_analyses(DEEP, 4096, 2)}


@pytest.mark.parametrize(("model", "stage"), [(model, stage) for model, own in MEASURED.items() for stage in own])
def test_an_analysis_takes_about_as_long_as_estimated(model, stage):
    assert ESTIMATED[model][stage] == pytest.approx(MEASURED[model][stage], rel=0.7)


@pytest.mark.parametrize("model", MEASURED)
def test_all_of_them_take_as_long_as_estimated_within_a_quarter(model):
    estimated = sum(ESTIMATED[model][stage] for stage in MEASURED[model])
    assert estimated == pytest.approx(sum(MEASURED[model].values()), rel=0.25)


def test_checkpoints_take_more():
    large = seconds_of_analyses(DEEP, 4096, 2)
    more = seconds_of_analyses(DEEP, 4096, 20)
    assert [stage for stage in more if more[stage] > large[stage]] == ["behaviour", "set-free"]
    one, four = (IMPORT.cost.seconds_for(size(DEEP, 4096, n, bytes=n * 10**8)) for n in (1, 4))
    assert four == pytest.approx(4 * one)


HUGE = Size(pass_flops=3.4e10, n_layers=30, n_heads=270)  # SmolLM2-135M
SMALL = Size(pass_flops=7e7, n_layers=2, n_heads=8)


@pytest.mark.parametrize("stage", [stage for stage in ANALYSES.values() if stage.units], ids=lambda stage: stage.name)
def test_an_estimate_follows_the_budget_of_the_study(stage):
    usual, large = stage.config(), stage.config(**stage.large_fields)
    assert stage.seconds_for(SMALL, usual) == pytest.approx(stage.cost.seconds_for(SMALL))
    assert stage.seconds_for(HUGE, large) == pytest.approx(stage.cost.seconds_for(HUGE))
    assert stage.seconds_for(HUGE, usual) > 1.4 * stage.seconds_for(HUGE, large)
    assert stage.seconds_for(SMALL, large) < stage.seconds_for(SMALL, usual)


def test_heads_are_ablated_on_as_many_sequences_as_they_are_estimated_on():
    for windows, reruns, parts in ((64, 1024, 0), (64, 1024, 16), (64, 1024, 32), (64, 1024, 1000), (4, 1024, 270)):
        assert HUGE.windows(windows, reruns, parts) == windows_within_budget(windows, reruns, parts)


def test_a_large_budget_gives_the_values_that_a_study_leaves_open():
    written = {"budget": "large", "importance": {"windows": 6}}
    importance = AnalysisConfig.model_validate(written).importance
    assert (importance.windows, importance.reference_windows) == (6, 8)
    study = read_study(find_study("smollm2"))
    assert study.analysis == AnalysisConfig.model_validate({"budget": "large", "prompts": study.analysis.prompts})
    assert AnalysisConfig().importance.windows == 64


MEASURED_PROMPTS = {"quick": 2.8, "four layers": 57.1}  # of `repeats`, on 2026-11-30
SMOLLM2 = Architecture(
    n_layers=30, n_heads=9, n_key_value_heads=3, d_model=576, d_head=64, d_mlp=1536, n_ctx=128, feed_forward="swiglu"
)
FOUR_LAYERS = Architecture(n_layers=4, n_heads=8, d_model=256, n_ctx=128, feed_forward="gelu")


def work(architecture: Architecture, threads: int = 1, **budgets) -> CountedWork:
    own = Size(architecture=architecture, checkpoint_bytes=2 * forward_flops(architecture, 49_152, 1))
    return count_work(PromptCircuitsConfig(**budgets), own, threads)


@pytest.mark.parametrize(("model", "architecture"), [("quick", QUICK), ("four layers", FOUR_LAYERS)])
def test_circuits_on_prompts_take_as_long_as_estimated(model, architecture):
    assert 1 / 1.5 < work(architecture).seconds / MEASURED_PROMPTS[model] < 1.5


def test_circuits_of_a_large_model_take_as_long_as_estimated_with_two_threads():
    measured = 450  # `ioi`, 200 pairs, on 2026-11-30
    assert 1 / 1.5 < work(SMOLLM2, threads=2).seconds / measured < 1.5


@pytest.mark.parametrize("name", ["own.csv", "own.jsonl", "own.parquet"])
def test_a_file_has_no_more_pairs_than_lines(name, tmp_path):
    rows = [{"prompt": f"a {i}", "corrupt": "b", "answer": "c", "wrong": "d"} for i in range(10)]
    frame = pd.DataFrame(rows)
    written = {".csv": frame.to_csv, ".parquet": frame.to_parquet}.get((tmp_path / name).suffix)
    if written:
        written(tmp_path / name, index=False)
    else:
        frame.to_json(tmp_path / name, orient="records", lines=True)
    own = Size(architecture=SMOLLM2, checkpoint_bytes=1)
    prompts = PromptsConfig(sets=({"name": "own", "path": str(tmp_path / name)},))
    assert count_work(PromptCircuitsConfig(), own, 1, prompts) == count_work(PromptCircuitsConfig(pairs=10), own, 1)
    missing = PromptsConfig(sets=({"name": "own", "path": str(tmp_path / "none.csv")},))
    assert count_work(PromptCircuitsConfig(), own, 1, missing).seconds > 0


def test_circuits_on_prompts_take_more_the_more_is_asked_of_them():
    whole = work(SMOLLM2)
    for fewer in ({"pairs": 50}, {"exact_pairs": 10}, {"steps": 2}, {"exact_edges": 20}, {"random_circuits": 1}):
        assert work(SMOLLM2, **fewer).seconds < whole.seconds
    assert work(SMOLLM2, pairs=50).memory_bytes < whole.memory_bytes < 4e9
    assert whole.memory_bytes < work(SMOLLM2, threads=2).memory_bytes < 4e9
    assert work(QUICK).seconds < work(FOUR_LAYERS).seconds < 0.1 * whole.seconds
