import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headstream.tasks import places
from headstream.tasks.errors import WorkError
from headstream.tasks.measuring.trained_model import Rows
from headstream.tasks.results import deliveries, warehouse
from headstream.tasks.results import views as view_files
from headstream.tasks.results.indexed_artifacts import indexed_artifacts
from headstream.tasks.results.sql import run_sql
from headstream.tasks.results.tables import quoted, tables, write_table
from headstream.tasks.results.views import views
from headstream.tasks.results.warehouse import build_warehouse, is_whole
from headstream.tasks.storage import store as store_module
from headstream.tasks.storage.artifact import Artifact, Spec
from headstream.tasks.storage.store import Store


class Archive:
    """A store that is easy to fill, each artifact a minute younger than the one before, and its warehouse."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "store")
        self.path = folder / "data" / "warehouse.duckdb"
        self.now = datetime.fromisoformat("2025-01-01T00:00:00+00:00")

    def add(self, stage: str, model_id: str, **content: Mapping[str, Any]) -> Artifact:
        """An artifact about a model, with rows of that model."""
        named = {table: {"model_id": model_id, **columns} for table, columns in content.items()}
        return self.build_artifact(stage, {"model_id": model_id}, named)

    def record(self, study: str, *artifacts: Artifact, cells: Mapping[str, str] | None = None) -> Artifact:
        """The record of a run; `cells` are the places of its models."""
        members = [{"study": study, "model_id": name, "cell": cell} for name, cell in (cells or {}).items()]
        content = {"studies": [{"study": study, "n_models": len(artifacts)}], "study_models": members}
        return self.build_artifact("study", {"study": study}, content, artifacts)

    def build_artifact(
        self, stage: str, facts: Mapping[str, str], content: Mapping[str, Rows], inputs: Sequence[Artifact] = ()
    ) -> Artifact:
        self.now += timedelta(minutes=1)

        def write(folder: Path) -> Mapping[str, str]:
            for table, rows in content.items():
                write_table(folder, table, rows)
            return facts

        roles = {str(i): artifact for i, artifact in enumerate(inputs)}
        return self.store.build(Spec(stage, "v1", {"now": str(self.now)}, roles, {}), write)

    def build(self) -> bool:
        return build_warehouse(self.store, self.path)

    def everything(self) -> dict[str, list[tuple]]:
        """The rows of every table and view."""
        names = [*tables(), *(view.name for view in views())]
        return dict(zip(names, self._rows(f"FROM {name} ORDER BY ALL" for name in names), strict=True))

    def as_stored(self) -> dict[str, list[tuple]]:
        """The rows of every table in the order in which they lie there."""
        return dict(zip(tables(), self._rows(f"FROM {name}" for name in tables()), strict=True))

    def query(self, sql: str) -> list[tuple]:
        return self._rows([sql])[0]

    def _rows(self, queries: Iterable[str]) -> list[list[tuple]]:
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH {quoted(str(self.path))} AS built (READ_ONLY)")
            connection.execute("USE built")
            return [connection.execute(query).fetchall() for query in queries]


@pytest.fixture(scope="module")
def few_claims(tmp_path_factory):
    """A folder with two claims: to decide all 38 would take most of a build."""
    folder = tmp_path_factory.mktemp("claims")
    for name in ("heads-specialise", "heads-prunable"):
        shutil.copy(places.CLAIMS / f"{name}.sql", folder)
    return folder


@pytest.fixture
def archive(tmp_path, monkeypatch, few_claims):
    archive = Archive(tmp_path)
    monkeypatch.setattr(places, "CLAIMS", few_claims)
    monkeypatch.setattr("headstream.tasks.storage.sealing.datetime", SimpleNamespace(now=lambda zone: archive.now))
    monkeypatch.setattr("os.fsync", lambda path: None)
    return archive


# What counts


def test_only_what_a_study_names_is_indexed(archive):
    named = archive.add("training", "a", training={"step": [1, 2]})
    archive.add("training", "b", training={"step": [1]})
    archive.record("quick", named)
    assert archive.build()
    assert archive.query("SELECT model_id, step FROM training") == [("a", 1), ("a", 2)]
    assert archive.query("SELECT study, n_models FROM studies") == [("quick", 1)]
    assert archive.query("SELECT stage, subject, created FROM artifacts ORDER BY created") == [
        ("training", "a", datetime(2025, 1, 1, 0, 1)),
        ("study", "quick", datetime(2025, 1, 1, 0, 3)),
    ]
    (size,) = archive.query("SELECT bytes FROM artifacts WHERE stage = 'training'")[0]
    assert size == (named.folder / "training.parquet").stat().st_size


def test_the_newest_record_of_each_study_counts(archive):
    first, second = (archive.add("training", model, training={"step": [1]}) for model in "ab")
    archive.record("quick", first, second)
    archive.record("heads", first)
    archive.record("quick", second)
    archive.build()
    assert archive.query("SELECT study, n_models FROM studies ORDER BY study") == [("heads", 1), ("quick", 1)]
    assert archive.query("SELECT model_id FROM training ORDER BY model_id") == [("a",), ("b",)]


def test_the_newest_artifact_of_a_stage_and_model_counts(archive):
    older = archive.add("behaviour", "a", evaluations={"step": [1], "validation_loss_nats": [3.0]})
    newer = archive.add("behaviour", "a", evaluations={"step": [1], "validation_loss_nats": [2.0]})
    archive.record("new", newer)
    archive.record("old", older)
    archive.build()
    assert archive.query("SELECT validation_loss_nats FROM evaluations") == [(2.0,)]


def test_what_a_study_names_and_the_store_lacks_is_left_out(archive, caplog):
    kept, gone = (archive.add("training", model, training={"step": [1]}) for model in "ab")
    archive.record("quick", kept, gone)
    archive.store.remove(gone.folder)
    archive.build()
    assert archive.query("SELECT model_id FROM training") == [("a",)]
    assert "1 artifacts that studies name are not in the store" in caplog.text


# How tables come together


def test_stages_fill_different_columns_of_one_table(archive):
    rows = {"step": [1, 1], "layer": [0, 1], "head": [0, 0]}
    archive.record(
        "quick",
        archive.add("behaviour", "a", heads={**rows, "entropy": [0.5, 0.25]}),
        archive.add("circuits", "a", heads={**rows, "layer": [1, 2], "confidence": [0.75, 1.0]}),
        archive.add("importance", "a", heads={**rows, "layer": [2, 3], "bos_attention": [0.0, 0.125]}),
    )
    archive.build()
    assert archive.query(
        "SELECT layer, entropy, confidence, bos_attention, prefix_matching FROM heads ORDER BY layer"
    ) == [
        (0, 0.5, None, None, None),
        (1, 0.25, 0.75, None, None),
        (2, None, 1.0, 0.0, None),
        (3, None, None, 0.125, None),
    ]


def test_artifacts_of_a_stage_may_have_different_columns(archive):
    archive.record(
        "quick",
        archive.add("training", "a", training={"step": [1], "loss_nats": [2.5]}),
        archive.add("training", "b", training={"step": [1], "tokens": [64]}),
    )
    archive.build()
    assert archive.query("SELECT model_id, tokens, loss_nats FROM training ORDER BY 1") == [
        ("a", None, 2.5),
        ("b", 64, None),
    ]


def test_a_column_that_two_stages_fill_is_refused(archive):
    archive.record(
        "quick",
        archive.add("behaviour", "a", evaluations={"step": [1], "early_index": [5]}),
        archive.add("circuits", "a", evaluations={"step": [1], "early_index": [5], "late_index": [9]}),
    )
    with pytest.raises(
        WorkError, match=r"evaluations\.early_index is filled by behaviour and by circuits, which don't fill the same"
    ):
        archive.build()


def test_stages_that_fill_the_same_columns_have_rows_of_their_own(archive):
    archive.record(
        "quick",
        archive.add("importance", "a", importance={"layer": [0], "head": [0], "method": ["lrp"], "score": [0.5]}),
        archive.add("pruning", "a", importance={"layer": [0], "head": [0], "method": ["gate"], "score": [0.9]}),
    )
    archive.build()
    assert archive.query("SELECT method, score FROM importance ORDER BY 1") == [("gate", 0.9), ("lrp", 0.5)]


def test_rows_that_come_twice_are_refused(archive):
    once, again = (archive.add(stage, "a", training={"step": [1], "tokens": [8]}) for stage in ("training", "import"))
    archive.record("quick", once, again)
    with pytest.raises(WorkError, match=r"two artifacts \(import and training\) have the same rows of training"):
        archive.build()
    assert not archive.path.exists()


def test_files_of_other_names_are_ignored(archive, monkeypatch):
    def write(folder: Path) -> None:
        pq.write_table(pa.table({"x": [1]}), folder / "documents.parquet")
        pq.write_table(pa.table({"x": [1]}), folder / "artifacts.parquet")
        (folder / "more").mkdir()
        pq.write_table(pa.table({"x": [1]}), folder / "more" / "heads.parquet")

    archive.record("quick", archive.store.build(Spec("corpus", "v1", {}, {}, {}), write))
    archive.build()
    assert archive.query("SELECT count(*) FROM heads") == [(0,)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"step": pa.array([1], pa.int64())}, "column step must be int32, got int64"),
        ({"step": pa.array([1], pa.int32()), "los": [1.0]}, "training has no column los"),
        ({"tokens": [1]}, "its key lacks step"),
        ({"step": pa.array([1], pa.int32())}, "its rows must be about "),
        (None, "not a Parquet file"),
    ],
)
def test_a_file_that_does_not_fit_its_table_is_refused_and_quarantined(archive, content, message):
    def write(folder: Path) -> None:
        file = folder / "training.parquet"
        if content:
            pq.write_table(pa.table({"model_id": ["a"], **content}), file)
        else:
            file.write_text("model_id,step\n")

    misfit = archive.store.build(Spec("training", "v1", {}, {}, {}), write)
    archive.record("quick", misfit)
    with pytest.raises(WorkError) as refusal:
        archive.build()
    assert f"training/{misfit.manifest.key}/training.parquet: {message}" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert archive.store.open("training", misfit.manifest.key) is None
    assert archive.build()  # without it


@pytest.mark.parametrize("wrong", ["evaluations", "training"])
def test_tables_beside_one_that_does_not_fit_are_not_asked(archive, wrong):
    """Whether they are looked at before it, and are being read when it is found, or after it."""

    def write(folder: Path) -> dict[str, str]:
        for name in ("evaluations", "training"):
            steps = pa.array([1], pa.int64() if name == wrong else pa.int32())
            pq.write_table(pa.table({"model_id": ["b"], "step": steps}), folder / f"{name}.parquet")
        return {"model_id": "b"}

    misfit = archive.store.build(Spec("training", "v1", {}, {}, {}), write)
    also = [archive.add("training", name, training={"step": [1]}) for name in "ac"]
    archive.record("quick", misfit, *also)
    with pytest.raises(WorkError, match=f"{wrong}.parquet: column step must be int32, got int64"):
        archive.build()
    assert archive.store.open("training", misfit.manifest.key) is None
    assert archive.build()
    assert archive.query("SELECT model_id FROM training") == [("a",), ("c",)]


def test_a_corrupt_file_is_quarantined_and_an_older_artifact_takes_its_place(archive):
    older, newer = (archive.add("training", "a", training={"step": [step]}) for step in (1, 2))
    archive.record("old", older)
    archive.record("new", newer)
    file = newer.folder / "training.parquet"
    file.write_bytes(file.read_bytes()[::-1])
    store_module._verified.cache_clear()
    archive.build()
    assert archive.query("SELECT step FROM training") == [(1,)]


# When it is rebuilt, and how it is published


@pytest.fixture
def built(archive):
    archive.record("quick", archive.add("training", "a", training={"step": [1, 2], "loss_nats": [3.0, 2.5]}))
    archive.build()
    return archive


def test_nothing_new_means_no_rebuild(built):
    before = built.path.stat().st_ino
    assert not built.build()
    assert built.path.stat().st_ino == before
    built.record("quick", built.add("training", "b", training={"step": [1]}))
    assert built.build()


def test_a_rebuild_gives_the_same_rows(built):
    before = built.everything()
    built.path.unlink()
    assert built.build()
    assert built.everything() == before


def test_the_file_has_a_format_that_older_clients_open(built):
    found = built.query("SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = 'built'")
    assert found == [("v1.5.0+",)]


@pytest.mark.parametrize("content", [b"", b"not a database" * 1000])
def test_a_broken_file_is_replaced(built, content):
    before = built.as_stored()
    built.path.write_bytes(content)
    assert built.build()
    assert built.as_stored() == before


def test_a_truncated_file_is_replaced(built):
    built.path.write_bytes(built.path.read_bytes()[:5000])
    assert built.build()
    assert built.query("SELECT count(*) FROM training") == [(2,)]


def test_a_damaged_block_is_noticed(built):
    assert is_whole(built.path)
    content = bytearray(built.path.read_bytes())
    for place in range(150_000, len(content), 1 << 18):  # in each block
        content[place] ^= 1
    built.path.write_bytes(content)
    assert not is_whole(built.path)
    assert build_warehouse(built.store, built.path, rebuild=True)
    assert is_whole(built.path)


def test_changed_code_means_a_rebuild_that_takes_nothing_over(built, monkeypatch):
    read = spied_deliveries(monkeypatch)
    monkeypatch.setattr(warehouse, "code_version", {"headstream.tasks.results.warehouse": "another"}.get)
    assert built.build()
    assert len(read) == 2
    assert not built.build()


def test_a_changed_view_means_a_rebuild(built, monkeypatch, tmp_path):
    changed = Path(shutil.copytree(view_files.VIEWS, tmp_path / "views"))
    (changed / "answers.sql").write_text("-- One row.\n--\n-- answer: to everything\nSELECT 42 AS answer\n")
    monkeypatch.setattr(view_files, "VIEWS", changed)
    assert built.build()
    assert built.query("FROM answers") == [(42,)]


def test_readers_keep_their_snapshot_and_new_ones_see_the_new_file(built):
    with duckdb.connect(built.path, read_only=True) as reader:
        built.record("quick", built.add("training", "b", training={"step": [1, 2, 3]}))
        built.build()
        assert reader.execute("SELECT count(*) FROM training").fetchall() == [(2,)]
        assert run_sql(built.path, "SELECT count(*) AS n FROM training").to_pylist() == [{"n": 3}]


def test_a_writer_elsewhere_is_not_in_the_way(built):
    write = "connection = duckdb.connect(sys.argv[1]); connection.execute('CREATE TABLE mine (x INT)')"
    command = [sys.executable, "-c", f"import duckdb, sys; {write}; print(flush=True); input()", built.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        built.record("quick", built.add("training", "b", training={"step": [1]}))
        assert built.build()
        assert built.query("SELECT count(*) FROM training") == [(1,)]
        holder.communicate(b"\n")
    assert built.query("SELECT count(*) FROM training") == [(1,)]


@pytest.mark.parametrize("error", [OSError, duckdb.IOException, duckdb.TransactionException])
def test_a_build_that_fails_leaves_the_old_file_and_nothing_else(built, monkeypatch, error):
    before = built.as_stored()
    built.record("quick", built.add("training", "b", training={"step": [1]}))

    def fail(*args: object) -> None:
        raise error("Could not write: No space left on device")

    monkeypatch.setattr(warehouse, "_publish", fail)
    with pytest.raises(WorkError, match=r"can't be written, .* room for a second copy: .*No space left on device"):
        built.build()
    assert built.as_stored() == before
    assert sorted(path.name for path in built.path.parent.iterdir()) == ["warehouse.duckdb", "warehouse.duckdb.lock"]


def test_builders_take_turns(archive):
    archive.record("quick", archive.add("training", "a", training={"step": [1]}))
    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(lambda _: archive.build(), range(3))) == [False, False, True]


def test_an_empty_store_makes_an_empty_warehouse(archive):
    assert indexed_artifacts(archive.store) == []
    assert archive.build()
    rows = archive.everything()
    assert {name for name, found in rows.items() if found} == {"warehouse"}


# What is taken over from the warehouse before


class Laboratory:
    """An archive of studies in which anything happens: models measured first or again, studies run anew, losses."""

    def __init__(self, archive: Archive, seed: int) -> None:
        self.archive = archive
        self.chance = random.Random(seed)
        self.models = [f"{n_layers}L-s{seed}" for n_layers in (1, 2) for seed in range(3)]
        self.results: dict[tuple[str, str], Artifact] = {}  # the newest by stage and subject
        for corpus in ("text", "prose"):
            rows = {"corpora": {"corpus_id": [corpus], "bigram_loss_nats": [3.0]}}
            self.results["tokens", corpus] = archive.build_artifact("tokens", {"corpus_id": corpus}, rows)

    def measure(self) -> None:
        model, random_number = self.chance.choice(self.models), self.chance.random
        n_layers, heads = int(model[0]), {"layer": [0, 0], "head": [0, 1]}
        about = {"n_layers": [n_layers], "n_heads": [2], "total_heads": [2 * n_layers], "seed": [int(model[-1])]}
        about["corpus_id"] = [self.chance.choice(["text", "prose"])]
        patterns = [[random_number(), 1.0] for _ in range(2)]
        content = {
            "training": {"models": about, "training": {"step": [1], "loss_nats": [random_number()]}},
            "behaviour": {
                "heads": {"step": [9, 9], **heads, "entropy": [random_number(), 0.5]},
                "evaluations": {"step": [9], "validation_loss_nats": [2.5 + random_number()]},
            },
            "weight-circuits": {"heads": {"step": [0, 9], **heads, "confidence": [random_number(), None]}},
            "importance": {"importance": {**heads, "method": ["lrp"] * 2, "score": [random_number(), 0.5]}},
            "pruning": {"importance": {**heads, "method": ["gate"] * 2, "score": [random_number(), 0.5]}},
            "redundancy": {"head_patterns": {**heads, "sequence": [0, 0], "query": [1, 1], "weights": patterns}},
        }
        stage = self.chance.choice(["training", "redundancy", *content])
        self.results[stage, model] = self.archive.add(stage, model, **content[stage])

    def run(self) -> None:
        study = self.chance.choice(["one", "two", "three"])
        models = self.chance.sample(self.models, self.chance.randint(1, len(self.models)))
        axes = self.chance.choice(["", "run=1 "])
        cells = {name: f"{axes}n_layers={name[0]} seed={name[-1]}" for name in models}
        named = [artifact for (_, subject), artifact in self.results.items() if subject in {"text", "prose", *models}]
        self.archive.record(study, *named, cells=cells)

    def lose(self) -> None:
        artifact = self.results.pop(self.chance.choice([*self.results]))
        self.archive.store.remove(artifact.folder)

    def spoil(self) -> None:
        """Something is found to be corrupt, or nobody knows yet."""
        stage, subject = self.chance.choice([*self.results])
        artifact = self.results.pop((stage, subject))
        if self.chance.random() < 0.5:
            return self.archive.store.quarantine(stage, artifact.manifest.key, "it is corrupt")
        file = min(artifact.folder.glob("*.parquet"))
        file.write_bytes(file.read_bytes()[::-1])
        store_module._verified.cache_clear()
        self.archive.store.open(stage, artifact.manifest.key)

    def forget(self) -> None:
        study = self.chance.choice(["one", "two", "three"])
        for artifact in self.archive.store.artifacts("study"):
            if artifact.manifest.facts["study"] == study:
                self.archive.store.remove(artifact.folder)


@pytest.mark.parametrize("seed", range(2))
def test_rows_taken_over_are_those_of_a_warehouse_built_anew(archive, seed):
    laboratory = Laboratory(archive, seed)
    for _ in range(40):
        laboratory.measure()
    for _ in range(3):
        laboratory.run()
        for _ in range(6):
            happens = laboratory.chance.choices(["measure", "run", "lose", "spoil", "forget"], [4, 4, 1, 1, 0.5])[0]
            getattr(laboratory, happens)()
        assert archive.build()
        taken_over = archive.as_stored()
        build_warehouse(archive.store, archive.path, rebuild=True)
        assert archive.as_stored() == taken_over


def spied_deliveries(monkeypatch) -> list[Artifact]:
    """The artifacts whose files the index reads, as it comes to them."""
    read: list[Artifact] = []
    of = deliveries.deliveries
    monkeypatch.setattr(deliveries, "deliveries", lambda store, changed: read.extend(changed) or of(store, changed))
    return read


def test_only_what_changed_is_read_again(built, monkeypatch):
    built.record("heads", built.add("behaviour", "b", evaluations={"step": [1]}))
    built.build()
    read = spied_deliveries(monkeypatch)
    newer = built.add("behaviour", "b", evaluations={"step": [1, 2]})
    record = built.record("heads", newer)
    built.build()
    assert read == [newer, record]
    assert built.query("SELECT count(*) FROM training") == [(2,)]
    build_warehouse(built.store, built.path, rebuild=True)
    assert len(read) == 2 + 4


def test_nothing_is_taken_over_from_a_damaged_file(built):
    content = bytearray(built.path.read_bytes())
    for place in range(150_000, len(content), 1 << 18):  # in each block
        content[place] ^= 1
    built.path.write_bytes(content)
    built.record("heads", built.add("training", "b", training={"step": [1]}))
    assert built.build()
    assert is_whole(built.path)
    assert built.query("SELECT model_id, step FROM training") == [("a", 1), ("a", 2), ("b", 1)]
