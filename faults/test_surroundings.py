"""What a run depends on changes underneath it: files are deleted, edited or become read-only."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from filelock import FileLock
from tiny import tiny_text

from faults.home import Home, require_same, wait_until, wait_until_it_waits
from headstream.tasks.graph.artifact_specs import corpus_spec
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.studies.known_studies import find_study
from headstream.tasks.study.schema import read_study

QUERY = ("select model_id from models order by 1", "--format", "csv")


@pytest.fixture
def read_only(finished) -> Iterator[Home]:
    """The finished home, with its store mounted read-only."""
    store = finished.store.root
    bound = subprocess.run(["mount", "--bind", store, store], capture_output=True, text=True)
    if bound.returncode:
        pytest.skip(f"the store can't be mounted read-only: {bound.stderr.strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", store], check=True)
        yield finished
    finally:
        subprocess.run(["umount", "--lazy", store], check=True)


@pytest.mark.fault("the store is mounted read-only", "a run ends with exit code 1 and one line")
def test_a_run_on_a_read_only_store(read_only, study):
    done = read_only.run("run", str(study))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr, done.stderr
    said = done.stderr.splitlines()[-1]
    assert said.startswith("headstream: ")
    assert f"{read_only.store.root} can't be read and written" in said
    assert "mount it writable" in said


@pytest.mark.fault("the store is mounted read-only", "`{command}`, which only reads, works")
@pytest.mark.parametrize("command", ["sql", "plan", "studies", "report", "claims", "diff", "index", "check", "gc"])
def test_reading_a_read_only_store(command, read_only, reference, study):
    arguments = {
        "sql": QUERY,
        "plan": (str(study),),
        "report": (str(study),),
        "claims": (str(study),),
        "diff": ("faulty", "faulty"),
        "gc": ("--dry-run",),
    }
    read_only.run_well(command, *arguments.get(command, ()))
    assert read_only.results() == reference.results()


@pytest.mark.fault("the warehouse is deleted during a run", "the run builds it again; the same rows and weights")
def test_the_warehouse_is_deleted(finished, reference, study):
    finished.forget("importance")
    process = finished.start("run", str(study))
    wait_until(lambda: finished.artifacts("importance"), process)
    finished.warehouse.unlink()
    _, err = process.communicate()
    assert process.returncode == 0, err
    require_same(finished, reference)


@pytest.mark.fault("`.staging` is deleted while `{stage}` is made", "it is started again; the same rows and weights")
@pytest.mark.parametrize("stage", ["training", "importance"])
def test_the_staging_folder_is_deleted(stage, finished, reference, study):
    finished.forget(stage)
    wanted = finished.stagings(reference.artifacts(stage))
    process = finished.start("run", str(study))
    wait_until(lambda: any(folder.exists() for folder in wanted), process)
    shutil.rmtree(finished.store.root / ".staging", ignore_errors=True)  # it may be written to meanwhile
    _, err = process.communicate()
    assert process.returncode == 0, err
    require_same(finished, reference)


@pytest.mark.fault("the study file is edited during a run", "the run and its record use what was read at the start")
def test_the_study_is_edited(finished, reference, study, tmp_path):
    finished.forget("importance")
    file = tmp_path / "faulty.toml"
    file.write_text(study.read_text())
    process = finished.start("run", str(file))
    wait_until(lambda: finished.artifacts("importance"), process)
    file.write_text(study.read_text().replace("n_layers = [1, 2]", "n_layers = [1]"))
    _, err = process.communicate()
    assert process.returncode == 0, err
    layers = "select config->>'$.grid.n_layers' from studies"
    assert finished.rows(layers) == [("[1,2]",)]
    require_same(finished, reference)
    finished.run_well("run", str(file))
    assert finished.rows(layers) == [("[1]",)]
    assert finished.rows("select n_layers from models") == [(1,)]


@pytest.fixture
def own_text(study, tmp_path) -> Path:
    """A study of one model on a copy of the text, which tests may change."""
    text = Path(tiny_text())
    shutil.copytree(text, tmp_path / "text")
    file = tmp_path / "faulty.toml"
    file.write_text(study.read_text().replace(str(text), str(tmp_path / "text")).replace("[1, 2]", "[0]"))
    return file


def rewrite(study: Path) -> None:
    """Change every other file of the text beside a study."""
    for path in sorted((study.parent / "text").glob("*.txt"))[::2]:
        path.write_text(path.read_text().upper())


@pytest.mark.fault(
    "files of the corpus change while they are read", "the run reads them again: the same as a run on the new text"
)
def test_the_text_changes_while_it_is_read(own_text, home: Home, tmp_path):
    asked = corpus_spec(read_study(find_study(str(own_text))).corpus)
    with FileLock(f"{home.staging(asked.stage, asked.key)}.lock"):
        process = home.start("run", str(own_text))
        wait_until_it_waits(process)
        rewrite(own_text)
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert home.store.open(asked.stage, asked.key) is None  # its key is that of the text as it was
    fresh = replace(home, folder=tmp_path / "fresh")
    fresh.run_well("run", str(own_text))
    require_same(home, fresh)


@pytest.mark.fault("files of the corpus change later in a run", "the run uses what it read; the next one reads again")
def test_the_text_changes_later(own_text, home: Home):
    process = home.start("run", str(own_text))
    wait_until(lambda: home.artifacts("training"), process)
    rewrite(own_text)
    _, err = process.communicate()
    assert process.returncode == 0, err
    before = home.rows("select text_sha256 from corpora")
    assert [holds_new(artifact) for artifact in home.artifacts("corpus")] == [False]
    home.run_well("run", str(own_text))
    assert sorted(holds_new(artifact) for artifact in home.artifacts("corpus")) == [False, True]
    assert home.rows("select text_sha256 from corpora") != before


def holds_new(corpus: Artifact) -> bool:
    """Whether a corpus holds the changed text."""
    return any(text.isupper() for text in pq.read_table(corpus.folder / "documents.parquet")["text"].to_pylist())
