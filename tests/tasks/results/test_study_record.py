import time
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from headstream.tasks.graph.artifact_specs import record_spec
from headstream.tasks.results.study_record import ModelOutcome, RecordedStudy, write_record
from headstream.tasks.storage.artifact import Artifact, Spec
from headstream.tasks.storage.latest_records import latest_record
from headstream.tasks.storage.store import Store
from headstream.tasks.study.stages import RECORD


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def artifact(store: Store, name: str) -> Artifact:
    spec = Spec("training", "v1", {"name": name}, {}, {})
    return store.build(spec, lambda folder: (folder / "w").write_text(name) and {"model_id": name})


def record(store: Store, config: dict, outcomes) -> Artifact:
    spec = record_spec(config, outcomes, [], latest_record(store, "s"))
    write = lambda folder: write_record(folder, RecordedStudy("s", "why?", config), outcomes, time.monotonic())  # noqa: E731
    return store.build(spec, write, incidental=RECORD.incidental)


def test_the_same_study_has_one_record(store):
    outcomes = [ModelOutcome("seed=0", "a", [artifact(store, "a")])]
    assert record(store, {"x": 1}, outcomes).folder == record(store, {"x": 1}, outcomes).folder


def test_going_back_makes_a_new_record_that_counts(store):
    outcomes = [ModelOutcome("seed=0", "a", [artifact(store, "a")])]
    first = record(store, {"x": 1}, outcomes)
    second = record(store, {"x": 2}, outcomes)
    third = record(store, {"x": 1}, outcomes)
    assert len({first.folder, second.folder, third.folder}) == 3
    assert third.manifest.config["supersedes"] == second.manifest.key
    assert second.manifest.config["supersedes"] == first.manifest.key


def test_a_clock_set_back_does_not_make_an_earlier_record_the_latest(store, monkeypatch):
    outcomes = [ModelOutcome("seed=0", "a", [artifact(store, "a")])]
    record(store, {"x": 1}, outcomes)
    monkeypatch.setattr(
        "headstream.tasks.storage.sealing.datetime",
        type("Then", (datetime,), {"now": lambda zone: datetime(2001, 1, 1)}),
    )
    second = record(store, {"x": 2}, outcomes)
    assert second.manifest.created.startswith("2001")
    assert latest_record(store, "s") == second


def test_failures_are_rows_with_their_reason(store):
    outcomes = [
        ModelOutcome("seed=0", "a", [artifact(store, "a")]),
        ModelOutcome("seed=1", "b", [], failure="the loss became NaN at step 3"),
    ]
    made = record(store, {}, outcomes)
    study = pq.read_table(made.folder / "studies.parquet").to_pylist()[0]
    assert (study["n_models"], study["n_failed"]) == (2, 1)
    rows = {row["model_id"]: row for row in pq.read_table(made.folder / "study_models.parquet").to_pylist()}
    assert rows["a"]["status"] == "trained"
    assert rows["b"]["failure"] == "the loss became NaN at step 3"
    assert set(made.manifest.inputs) == {"training/a"}
    assert made.folder.is_relative_to(Path(store.root))
