"""Thousands of results: the first questions are answered at once, and the index is built in reasonable time."""

import time
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest

from faults.home import Home
from headstream.tasks.graph.artifact_specs import record_spec
from headstream.tasks.results.study_record import ModelOutcome, RecordedStudy, write_record
from headstream.tasks.results.tables import write_table
from headstream.tasks.storage.artifact import Artifact, Spec
from headstream.tasks.storage.store import Store
from headstream.tasks.study.stages import RECORD

MODELS = 5000
ALSO_PRUNED = 5  # every so many models; the others are trained, and their behaviour is measured
TABLES = ("models", "training", "evaluations", "heads", "importance", "ablations", "pruning")
ANSWER_SECONDS = 1.0
MORE = 10  # models of another study
INDEX_SECONDS = 60.0
ASKED_FIRST = ("model_summary", "head_summary", "induction_by_depth", "scaling_by_heads", "learning_curves")
ASKED_FIRST += ("phase_changes", "pruning_curve", "importance_agreement", "claims_latest")


class Template:
    """An artifact of a real run, from which copies for other models are made."""

    def __init__(self, artifact: Artifact, tokens: Artifact) -> None:
        self.stage, self.facts, self.tokens = artifact.manifest.stage, artifact.manifest.facts, tokens
        names = [name for name in TABLES if f"{name}.parquet" in artifact.manifest.files]
        self.frames = {name: pq.read_table(artifact.folder / f"{name}.parquet").to_pandas() for name in names}

    def make(self, store: Store, model_id: str, seed: int) -> Artifact:
        def write(folder: Path) -> dict[str, object]:
            for name, frame in self.frames.items():
                write_table(folder, name, self._of(frame, model_id, seed))
            return {**self.facts, "model_id": model_id}

        return store.build(Spec(self.stage, "v1", {"model": model_id}, {"tokens": self.tokens}, {}), write)

    @staticmethod
    def _of(frame: pd.DataFrame, model_id: str, seed: int) -> pd.DataFrame:
        changed = {"model_id": model_id, "seed": seed}
        return frame.assign(**{name: value for name, value in changed.items() if name in frame.columns})


def add_study(store: Store, name: str, templates: dict[str, list[Template]], seeds: range) -> None:
    """A study of models like the reference's, of these seeds."""
    outcomes = []
    for seed in seeds:
        measured = [*templates] if seed % ALSO_PRUNED == 0 else [*templates][:2]
        of_model = [templates[stage][seed % 2] for stage in measured]
        model_id = f"{of_model[0].facts['name']}-s{seed}-{seed:08x}"
        artifacts = [template.make(store, model_id, seed) for template in of_model]
        outcomes.append(ModelOutcome(f"seed={seed}", model_id, artifacts))
    config = {"name": name}
    store.build(
        record_spec(config, outcomes, [], None),
        lambda folder: write_record(folder, RecordedStudy(name, "", config), outcomes, time.monotonic()),
        incidental=RECORD.incidental,
    )


@pytest.fixture(scope="module")
def templates(reference) -> dict[str, list[Template]]:
    """What is made of each stage, trained models first."""
    stages = ("training", "behaviour", "importance", "pruning")
    (tokens,) = reference.artifacts("tokens")
    return {stage: [Template(artifact, tokens) for artifact in reference.artifacts(stage)] for stage in stages}


@pytest.fixture(scope="module")
def many(reference, templates, tmp_path_factory) -> Home:
    """A home with thousands of models like the reference's, and one study of them."""
    home = Home(tmp_path_factory.mktemp("many") / "home", reference.environment)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda path: None)  # how long a disk takes is not asked
        add_study(home.store, "many", templates, range(MODELS))
    return home


def seconds(home: Home, *arguments: str) -> float:
    """How long a command takes."""
    started = time.perf_counter()
    home.run_well(*arguments)
    return time.perf_counter() - started


@pytest.mark.fault("{models:,} models: `headstream index`", "a warehouse within a minute")
@pytest.mark.parametrize("models", [MODELS])
def test_indexing(models, many, record_property):
    took = seconds(many, "index")
    record_property("took", f"{len(many.artifacts()):,} artifacts in {took:.0f} s")
    assert many.rows("select count(*) from models") == [(models,)]
    assert took < INDEX_SECONDS


@pytest.mark.fault(
    "{models:,} models: a study of {more} others, and `headstream claims`", "an answer within half a minute"
)
@pytest.mark.parametrize(("models", "more"), [(MODELS, MORE)])
def test_one_study_more(models, more, many, templates, record_property):
    many.run_well("index") if not many.warehouse.exists() else None
    add_study(many.store, "more", templates, range(models, models + more))
    took = seconds(many, "claims", "more")
    record_property("took", f"{took:.1f} s")
    assert many.rows("select count(*) from models") == [(models + more,)]
    assert took < 30


@pytest.mark.fault("{models:,} models: all of `{view}`", "an answer within a second")
@pytest.mark.parametrize("models", [MODELS])
@pytest.mark.parametrize("view", ASKED_FIRST)
def test_asking(models, view, many, record_property):
    many.run_well("index") if not many.warehouse.exists() else None
    with duckdb.connect(str(many.warehouse), read_only=True) as connection:
        started = time.perf_counter()
        rows = connection.execute(f"FROM {view}").fetchall()
        took = time.perf_counter() - started
    command = seconds(many, "sql", f"select * from {view} limit 20")
    record_property("took", f"{len(rows):,} rows in {took:.2f} s; `headstream sql` shows 20 in {command:.1f} s")
    assert rows
    assert took < ANSWER_SECONDS


@pytest.mark.fault("{models:,} models: `headstream {command}`", "an answer within half a minute")
@pytest.mark.parametrize("models", [MODELS])
@pytest.mark.parametrize("command", ["check", "studies", "gc"])
def test_looking_after_them(models, command, many, record_property):
    many.run_well("index") if not many.warehouse.exists() else None
    took = seconds(many, command, *(["--dry-run"] if command == "gc" else []))
    record_property("took", f"{took:.1f} s")
    assert took < 30
