"""What changed between two runs."""

import time
from dataclasses import replace

import duckdb
import pytest
from invented_study import Model, write_measurements, write_warehouse
from rendered import render_report

from headstream.tasks.graph.artifact_specs import record_spec
from headstream.tasks.report.comparison import (
    Metric,
    Summary,
    _flat,
    by_chance,
    claim_changes,
    config_changes,
    metric_changes,
    n_compared,
    not_compared,
    summarise,
)
from headstream.tasks.report.publishing import previous_summary
from headstream.tasks.results.study_record import ModelOutcome, RecordedStudy, write_record
from headstream.tasks.results.study_results import open_results
from headstream.tasks.storage.artifact import Spec
from headstream.tasks.storage.latest_records import latest_record
from headstream.tasks.storage.store import Store
from headstream.tasks.study.stages import RECORD

BEFORE = Summary(
    metrics=[
        Metric("2L4H", "loss", [0, 1, 2], [2.4, 2.5, 2.6]),
        Metric("2L4H", "gain", [0], [1.0]),
        Metric("0L", "loss", [0, 1, 2], [3.7, 3.8, 3.9]),
    ],
    verdicts={"a": "holds", "b": "undecided"},
    text=["abc"],
    config={"grid.seed": [0], "model.d_model": 128},
    finished_at="2026-01-01T03:00",
)


def with_metrics(*metrics: Metric) -> Summary:
    return replace(BEFORE, metrics=list(metrics))


def test_more_seeds_are_one_change():
    def so_far(**looks):
        return dict(_flat({"until_decided": {"at_most": 9, "so_far": looks}}))

    assert so_far() == {"until_decided.at_most": 9}
    assert so_far(one=5, two=5)["seeds of each kind so far"] == "5"
    assert so_far(one=5, two=3)["seeds of each kind so far"] == "3 to 5"


def test_a_metric_moves_if_its_difference_leaves_its_own_interval():
    """Seed by seed 0.01 more each time is clear, though both runs have intervals of 0.25; 0.05 by other seeds isn't."""
    same_seeds = with_metrics(Metric("2L4H", "loss", [0, 1, 2], [2.411, 2.509, 2.61]))
    (change,) = metric_changes(BEFORE, same_seeds)
    assert (change.what, change.before, change.after, change.note) == (
        "loss of 2L4H", "2.5 (2.4 to 2.6)", "2.51 (2.411 to 2.61)", "by 0.01 ± 0.0025",
    )  # fmt: skip
    for moved in ([2.4, 2.5, 2.6], [2.3, 2.6, 2.62]):
        assert metric_changes(BEFORE, with_metrics(Metric("2L4H", "loss", [0, 1, 2], moved))) == []
    assert metric_changes(BEFORE, with_metrics(Metric("2L4H", "loss", [3, 4, 5], [2.45, 2.55, 2.65]))) == []
    both = "With 95 % intervals in both: 1 metric; by chance alone, at most 0.1 of them would differ on average."
    assert by_chance(BEFORE, same_seeds) == both


def test_under_three_seeds_every_change_is_told_as_such():
    after = with_metrics(Metric("2L4H", "gain", [0, 1], [1.1, 1.2]))
    (change,) = metric_changes(BEFORE, after)
    assert (change.before, change.after, change.note) == ("1", "1.1, 1.2", "under three seeds: no interval")
    assert metric_changes(BEFORE, with_metrics(Metric("2L4H", "gain", [0], [1.0]))) == []
    assert by_chance(BEFORE, after) == ""


def test_what_prints_alike_is_the_same():
    was = replace(BEFORE, metrics=[Metric("2L4H", "gain", [0], [0.43791])])
    assert metric_changes(was, with_metrics(Metric("2L4H", "gain", [0], [0.437912]))) == []
    assert len(metric_changes(was, with_metrics(Metric("2L4H", "gain", [0], [0.4389])))) == 1


def test_large_numbers_are_written_out():
    was = replace(BEFORE, metrics=[Metric("0L", "tokens_per_second", [0, 1], [135_512.4, 134_012.2])])
    (change,) = metric_changes(was, with_metrics(Metric("0L", "tokens_per_second", [0], [99_000.0])))
    assert (change.before, change.after) == ("135,512, 134,012", "99,000")


@pytest.mark.parametrize(
    ("value", "printed"),
    [(999.0, "999"), (1000.0, "1,000"), (-1000.0, "-1,000"), (1000.4, "1,000"), (1234567.8, "1,234,568")],
)
def test_thousands_are_separated_from_one_thousand_on(value, printed):
    was, now = (with_metrics(Metric("0L", "tokens_per_second", [0], [number])) for number in (value, 0.0))
    (change,) = metric_changes(was, now)
    assert (change.before, change.after) == (printed, "0")


def test_only_the_same_kinds_of_models_are_compared():
    assert metric_changes(BEFORE, with_metrics(Metric("3L4H", "loss", [0, 1, 2], [1.0, 1.1, 1.2]))) == []


def test_models_are_the_same_by_their_settings_however_grids_label_them():
    """One grid varies the width, the other the length: both have the model of width 64 and 1,000 tokens."""

    def summary(axes: list[str], **kinds: tuple[int, int, float]) -> Summary:
        settings = {
            label: {"name": "2L4H", "d_model": d, "tokens": t, "biases": False} for label, (d, t, _) in kinds.items()
        }
        metrics = [Metric(label, "loss", [0], [loss]) for label, (*_, loss) in kinds.items()]
        return replace(BEFORE, metrics=metrics, kinds=settings, axes=axes)

    wide = summary(["d_model"], d32=(32, 1000, 3.1), d64=(64, 1000, 2.86))
    long = summary(["tokens"], t1=(64, 1000, 2.25), t2=(64, 2000, 2.0))
    (change,) = metric_changes(wide, long)
    assert (change.what, change.before, change.after) == ("loss of 2L4H d_model=64 tokens=1000", "2.86", "2.25")
    assert not_compared(wide, long, "wide", "long") == [
        "Only wide has these models: d32.",
        "Only long has these models: t2.",
    ]
    fixed = summary([], all=(64, 3000, 1.9))
    assert [c.what for c in metric_changes(wide, fixed)] == ["loss of 2L4H d_model=64"]  # tokens differ as settings do
    assert n_compared(summary([], all=(16, 1, 5.0)), wide) == 0
    more = replace(fixed, metrics=[*fixed.metrics, Metric("all", "gain", [0], [1.0])])
    assert not_compared(fixed, more, "a", "b") == ["Only b has these metrics of models that both have: gain."]
    assert n_compared(BEFORE, with_metrics(*BEFORE.metrics)) == 3  # kept by an earlier release, without settings


def test_studies_whose_grids_vary_different_settings_are_compared(tmp_path):
    seeds = range(3)
    cells = [("d_model=32", 3.1), ("d_model=64", 2.86)]
    wide = [Model(seed=s, cell=cell, loss=loss + 0.01 * s) for cell, loss in cells for s in seeds]
    with open_results(write_measurements(tmp_path / "a.duckdb", *wide), "invented") as results:
        before = summarise(results)
    assert before.axes == []  # the invented models' width isn't what their cells say
    assert {kind["d_model"] for kind in before.kinds.values()} == {64}
    with open_results(write_measurements(tmp_path / "b.duckdb", Model(), Model(n_layers=1)), "invented") as results:
        assert summarise(results).axes == ["n_layers"]


class Alone(Model):
    """The model of a study without a grid."""

    place = "alone"


def test_a_study_of_one_model_has_a_summary(tmp_path):
    with open_results(write_measurements(tmp_path / "w.duckdb", Alone()), "invented") as results:
        summary = summarise(results)
    assert (summary.axes, [*summary.kinds]) == ([], ["2L4H"])


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
    first = write_warehouse(tmp_path / "a.duckdb", *(Model(n_heads=2, seed=s, loss=2.3 + 0.01 * s) for s in seeds))
    second = write_warehouse(tmp_path / "b.duckdb", *(Model(n_heads=2, seed=s, loss=2.1 + 0.01 * s) for s in seeds))
    for name in "abc":
        (tmp_path / name).mkdir()
    previous = render_report(first, "invented", tmp_path / "a")["summary"]
    assert "Since last time" not in (tmp_path / "a" / "report.md").read_text()
    render_report(second, "invented", tmp_path / "b", previous=previous)
    text = (tmp_path / "b" / "report.md").read_text()
    assert "**Since last time** (2026-01-02T04:00 UTC)" in text
    assert "| validation_loss_nats of 2L2H | 2.31 (2.3 to 2.32) | 2.11 (2.1 to 2.12) | by -0.2 ± " in text
    assert (
        "With 95 % intervals in both: 6 metrics; by chance alone, at most 0.3 of them would differ on average." in text
    )
    render_report(first, "invented", tmp_path / "c", previous=previous)
    assert "Nothing differs" in (tmp_path / "c" / "report.md").read_text()


def test_a_summary_survives_json(tmp_path):
    with open_results(write_warehouse(tmp_path / "w.duckdb", Model()), "invented") as results:
        summary = summarise(results)
    stored = {**vars(summary), "metrics": [list(metric) for metric in summary.metrics]}
    assert Summary.from_json(stored) == summary
    assert Summary.from_json(stored | {"metrics": [["2L4H", "loss", 2.5, None, 1]]}).metrics == []  # as once kept
    assert {metric.metric for metric in summary.metrics} > {"validation_loss_nats", "repeat_gain_nats"}


def test_the_last_runs_summary_is_found_even_when_its_report_is_gone(tmp_path):
    store = Store(tmp_path / "store")

    def record(n: int):
        model = store.build(Spec("training", "v", {"n": n}, {}, {}), lambda folder: None)
        outcomes = [ModelOutcome("cell", "m", [model])]
        spec = record_spec({"n": n}, outcomes, [], latest_record(store, "s"))
        write = lambda folder: write_record(folder, RecordedStudy("s", "", {}), outcomes, time.monotonic())  # noqa: E731
        return store.build(spec, write, incidental=RECORD.incidental)

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


def test_pairs_that_were_edited_are_a_change():
    before, after = (replace(BEFORE, prompts={"names": pairs, which: "0"}) for pairs, which in (("a", "x"), ("b", "y")))
    (change,) = config_changes(before, after)
    assert (change.what, change.before, change.after) == ("pairs of names (md5)", "a", "b")
    assert config_changes(BEFORE, after) == []  # an earlier release kept none


def test_a_summary_has_what_prompts_asked(tmp_path):
    path = write_measurements(tmp_path / "w.duckdb", Model())
    with duckdb.connect(path) as connection:
        about = "INSERT INTO {} BY NAME SELECT model_id, 'ioi' AS prompts, {} FROM models"
        connection.execute(about.format("prompt_scores", "1 AS step, 8 AS n_pairs, 0.9 AS accuracy, 1.5 AS clean_nats"))
        connection.execute(about.format("prompt_circuits", "0.1 AS cmd_absolute"))
        connection.execute(about.format("prompts", "1 AS pair, 'a b' AS prompt, 'a c' AS corrupt, ['d'] AS answers"))
    with open_results(path, "invented") as results:
        found = summarise(results)
    with duckdb.connect(path) as connection:
        connection.execute("UPDATE prompts SET prompt = 'a e'")
    values = {metric.metric: metric.values for metric in found.metrics}
    assert (values["accuracy in ioi"], values["log-odds in ioi"], values["cmd in ioi"]) == ([0.9], [1.5], [0.1])
    with open_results(path, "invented") as results:
        assert summarise(results).prompts["ioi"] != found.prompts["ioi"]
