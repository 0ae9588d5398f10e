"""What changed between two runs."""

import time
from dataclasses import replace

import pytest
from invented_study import Model, write_warehouse

from tasks.artifact_specs import record_spec
from tasks.report.comparison import Metric, Summary, claim_changes, config_changes, metric_changes, summarise
from tasks.report.publishing import previous_summary
from tasks.report.rendering import render_report
from tasks.results.study_record import RECORD_TABLES, ModelOutcome, latest_record, write_record
from tasks.results.study_results import open_results
from tasks.storage.artifact import Spec
from tasks.storage.store import Store

BEFORE = Summary(
    metrics=[
        Metric("2L4H", "loss", 2.5, 0.03, 3),
        Metric("2L4H", "gain", 1.0, None, 1),
        Metric("0L", "loss", 3.8, 0.1, 3),
    ],
    verdicts={"a": "holds", "b": "undecided"},
    text=["abc"],
    config={"grid.seed": [0], "model.d_model": 128},
    finished_at="2026-01-01T03:00",
)


def with_metrics(*metrics: Metric) -> Summary:
    return replace(BEFORE, metrics=list(metrics))


@pytest.mark.parametrize(
    ("mean", "ci95", "moved"), [(2.5, 0.0, False), (2.549, 0.04, False), (2.551, 0.04, True), (2.44, 0.04, True)]
)
def test_a_metric_moves_if_it_leaves_both_error_bars(mean, ci95, moved):
    """0.03 and 0.04 are 0.05 together."""
    changes = metric_changes(BEFORE, with_metrics(Metric("2L4H", "loss", mean, ci95, 3)))
    assert [change.what for change in changes] == (["loss of 2L4H"] if moved else [])


def test_without_an_error_bar_every_change_is_told_as_such():
    (change,) = metric_changes(BEFORE, with_metrics(Metric("2L4H", "gain", 1.1, None, 1)))
    assert (change.before, change.after, change.note) == ("1", "1.1", "one model: no error bar")
    assert metric_changes(BEFORE, with_metrics(Metric("2L4H", "gain", 1.0, None, 1))) == []


def test_large_numbers_are_written_out():
    was = replace(BEFORE, metrics=[Metric("0L", "tokens_per_second", 135_512.4, 1_234.5, 3)])
    (change,) = metric_changes(was, with_metrics(Metric("0L", "tokens_per_second", 99_000.0, 12.34, 3)))
    assert (change.before, change.after) == ("135,512 ± 1,234", "99,000 ± 12")


def test_only_the_same_kinds_of_models_are_compared():
    assert metric_changes(BEFORE, with_metrics(Metric("3L4H", "loss", 1.0, 0.01, 3))) == []


def test_verdicts_and_settings_that_differ():
    after = replace(BEFORE, verdicts={"a": "fails", "b": "undecided", "c": "holds"}, config={"grid.seed": [0, 1]})
    assert [vars(c) for c in claim_changes(BEFORE, after)] == [
        {"what": "claim a", "before": "holds", "after": "fails", "note": ""},
        {"what": "claim c", "before": None, "after": "holds", "note": ""},
    ]
    assert [c.what for c in config_changes(BEFORE, after)] == ["grid.seed", "model.d_model"]
    assert [c.what for c in config_changes(BEFORE, replace(BEFORE, text=["abd"]))] == ["text (sha256)"]


def test_a_report_says_what_moved_since_last_time(tmp_path):
    seeds = range(3)
    first = write_warehouse(tmp_path / "a.duckdb", *(Model(seed=s, loss=2.3 + 0.01 * s) for s in seeds))
    second = write_warehouse(tmp_path / "b.duckdb", *(Model(seed=s, loss=2.1 + 0.01 * s) for s in seeds))
    for name in "abc":
        (tmp_path / name).mkdir()
    previous = render_report(first, "invented", tmp_path / "a")["summary"]
    assert "Since last time" not in (tmp_path / "a" / "report.md").read_text()
    render_report(second, "invented", tmp_path / "b", previous=previous)
    text = (tmp_path / "b" / "report.md").read_text()
    assert "**Since last time** (2026-01-02T04:00 UTC)" in text
    assert "| validation_loss_nats of 2L4H | 2.31 ± 0.025 | 2.11 ± 0.025 | beyond the error bars |" in text
    render_report(first, "invented", tmp_path / "c", previous=previous)
    assert "Nothing differs" in (tmp_path / "c" / "report.md").read_text()


def test_a_summary_survives_json(tmp_path):
    with open_results(write_warehouse(tmp_path / "w.duckdb", Model()), "invented") as results:
        summary = summarise(results)
    stored = {**vars(summary), "metrics": [list(metric) for metric in summary.metrics]}
    assert Summary.from_json(stored) == summary
    assert {metric.metric for metric in summary.metrics} > {"validation_loss_nats", "repeat_gain_nats"}


def test_the_last_runs_summary_is_found_even_when_its_report_is_gone(tmp_path):
    store = Store(tmp_path / "store")

    def record(n: int):
        model = store.build(Spec("training", "v", {"n": n}, {}, {}), lambda folder: None)
        outcomes = [ModelOutcome("cell", "m", [model])]
        spec = record_spec({"n": n}, outcomes, [], latest_record(store, "s"))
        write = lambda folder: write_record(folder, "s", "", {}, outcomes, time.monotonic())  # noqa: E731
        return store.build(spec, write, incidental=RECORD_TABLES)

    def report(of, found, previous=None):
        spec = Spec("report", "v", {"previous": previous, "found": found}, {"study": of}, {})
        return store.build(spec, lambda folder: {"summary": found})

    first = record(1)
    assert previous_summary(store, first) is None
    earlier = report(first, {"x": 1})
    second = record(2)
    assert previous_summary(store, second) == {"x": 1}
    report(second, {"x": 2}, previous={"x": 1})
    store.remove(earlier.folder)
    assert previous_summary(store, second) == {"x": 1}
