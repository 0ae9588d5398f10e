"""What is found to be wrong with a store, and what of it can be removed."""

import os
import time
from pathlib import Path

import pytest

from headstream.tasks.graph.artifact_specs import record_spec
from headstream.tasks.results.study_record import ModelOutcome, RecordedStudy, write_record
from headstream.tasks.results.warehouse import build_warehouse
from headstream.tasks.storage import store as store_module
from headstream.tasks.storage.artifact import MANIFEST, Artifact, Spec, read_manifest
from headstream.tasks.storage.latest_records import latest_record
from headstream.tasks.storage.store import Store
from headstream.tasks.studies.housekeeping import check_all, find_unneeded
from headstream.tasks.study.stages import RECORD


def make(store: Store, stage: str, of: str, **inputs: Artifact) -> Artifact:
    return store.build(Spec(stage, "v1", {"of": of}, inputs, {}), lambda folder: (folder / "x").write_text(of) and {})


def record(store: Store, study: str, *artifacts: Artifact) -> Artifact:
    outcomes = [ModelOutcome("cell", "model", artifacts)]
    spec = record_spec({"name": study}, outcomes, [], latest_record(store, study))
    write = lambda folder: write_record(folder, RecordedStudy(study, "", {}), outcomes, time.monotonic())  # noqa: E731
    return store.build(spec, write, incidental=RECORD.incidental)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


def names(found: list[tuple[str, Path, int]]) -> set[tuple[str, str]]:
    artifacts = [read_manifest(folder) for _, folder, _ in found]
    return {(a.manifest.stage, a.manifest.config.get("of", "")) for a in artifacts}


def found(store: Store, warehouse: Path) -> dict[str, str]:
    return {check.subject: check.finding for check in check_all(store, warehouse) if not check.passed}


def test_what_no_latest_record_leads_to_can_be_removed(store):
    text = make(store, "corpus", "text")
    old, new = (make(store, "training", of, corpus=text) for of in ("old", "new"))
    first = record(store, "s", old)
    make(store, "report", "of first", study=first)
    second = record(store, "s", new)
    make(store, "report", "of second", study=second)
    other = make(store, "training", "of another study", corpus=make(store, "corpus", "other text"))
    record(store, "other", other)
    make(store, "training", "of a study that never ended")
    assert names(find_unneeded(store, keep_days=0)) == {
        ("training", "old"),
        ("training", "of a study that never ended"),
        ("report", "of first"),
        ("study", ""),
    }


def test_what_a_run_used_lately_stays(store):
    artifact = make(store, "training", "found again")
    assert find_unneeded(store, keep_days=7) == []
    long_ago = time.time() - 30 * 86400
    os.utime(artifact.folder / MANIFEST, (long_ago, long_ago))
    assert names(find_unneeded(store, keep_days=7)) == {("training", "found again")}
    list(check_all(store, store.root / "no warehouse"))  # checking is not using
    assert names(find_unneeded(store, keep_days=7)) == {("training", "found again")}
    assert store.find(Spec("training", "v1", {"of": "found again"}, {}, {}))
    assert find_unneeded(store, keep_days=7) == []


def test_a_sound_store_has_nothing_wrong(store, tmp_path):
    record(store, "s", make(store, "training", "a"))
    build_warehouse(store, tmp_path / "w.duckdb")
    assert found(store, tmp_path / "w.duckdb") == {}


def test_a_flipped_byte_is_found_and_quarantined(store, tmp_path):
    artifact = make(store, "training", "abc")
    record(store, "s", artifact)
    build_warehouse(store, tmp_path / "w.duckdb")
    (artifact.folder / "x").write_text("abd")
    store_module._verified.cache_clear()  # a process verifies once
    wrong = found(store, tmp_path / "w.duckdb")
    assert any("quarantine" in seen for seen in wrong.values())
    assert wrong["study s"] == "lacks 1 of 1 artifacts. Run `headstream run s`."
    assert not artifact.folder.exists()


def test_a_broken_manifest_is_found(store, tmp_path):
    artifact = make(store, "training", "abc")
    (artifact.folder / MANIFEST).write_text("{")
    assert any("quarantine" in seen for seen in found(store, tmp_path / "w.duckdb").values())


def test_a_warehouse_that_lags_behind_is_found(store, tmp_path):
    build_warehouse(store, tmp_path / "w.duckdb")
    record(store, "s", make(store, "training", "a"))
    assert found(store, tmp_path / "w.duckdb") == {"warehouse": "is out of date. Run `headstream index`."}


def test_a_new_home_has_nothing_wrong(tmp_path):
    checks = {check.subject: check for check in check_all(Store(tmp_path / "none" / "store"), tmp_path / "w.duckdb")}
    assert all(check.passed for check in checks.values())
    assert checks["artifacts"].finding == "0 artifacts, 0 MB: as they were written"
    assert checks["warehouse"].finding == "none yet: no study has run"


def test_a_study_without_a_warehouse_is_found(store, tmp_path):
    record(store, "s", make(store, "training", "a"))
    assert found(store, tmp_path / "w.duckdb") == {"warehouse": "is out of date. Run `headstream index`."}
