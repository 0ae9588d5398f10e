"""What a run of a study would do, and whether the disk has room for it, before anything is there."""

import random
import shutil
import string
from collections import namedtuple

import pytest
from made_artifacts import made_text
from tiny import tiny_text

from headstream.tasks.errors import WorkError
from headstream.tasks.graph import artifact_specs, planning
from headstream.tasks.graph.planned_claims import training_warnings
from headstream.tasks.graph.planning import PlannedArtifact, plan_artifacts, require_space
from headstream.tasks.graph.study_graph import study_graph
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.study.schema import parse_study
from headstream.tasks.study.stages import STAGES

Usage = namedtuple("Usage", "total used free")
FACTS = {"model_id": "m", "seconds": 1.0, "flops": 1e9}
STEPS = [
    PlannedArtifact("corpus", "documents", True, "made"),
    PlannedArtifact("training", "seed=0", False, "not made yet", bytes=40_000_000),
    PlannedArtifact("behaviour", "seed=0", False, "its model will be trained first", bytes=2_000_000),
]
NEEDED = 42_000_000 + 2 * planning.BYTES_INDEXED_PER_MODEL


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path / "not" / "made" / "yet"))


def with_free(monkeypatch, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 10**9 - free, free))


def test_a_study_that_fits_may_run(monkeypatch):
    with_free(monkeypatch, NEEDED)
    require_space(STEPS)


def test_one_that_does_not_is_refused_with_both_figures(monkeypatch):
    with_free(monkeypatch, NEEDED - 1)
    with pytest.raises(WorkError, match=r"about 44 MB to .* which has 44 MB free. Free disk space"):
        require_space(STEPS)


def test_one_that_is_finished_needs_no_room(monkeypatch):
    with_free(monkeypatch, 0)
    require_space(STEPS[:1])


def test_every_step_is_planned_in_the_order_of_the_run():
    content = {"name": "s", "corpus": {"paths": [str(tiny_text())]}, "analysis": {"stages": ["behaviour"]}}
    planned = plan_artifacts(parse_study("s", content | {"costs": {"n_heads": [1, 2]}}))
    assert [each.stage for each in planned] == ["corpus", "tokens", "costs", "training", "behaviour"]
    assert not any(each.done for each in planned)
    assert all(each.seconds > 0 and each.bytes > 0 for each in planned)
    assert "costs" not in [each.stage for each in plan_artifacts(parse_study("s", content))]


def test_changed_code_of_text_is_taken_to_give_the_same_text(monkeypatch):
    """Nobody is told that all models will be trained again because a comment of a file format moved into code."""
    content = {
        "name": "s",
        "corpus": {"paths": [str(tiny_text())], "validation_fraction": 0.2},
        "tokenizer": {"vocabulary": 270},
        "model": {"d_model": 8, "n_heads": 2, "n_ctx": 8},
        "training": {"tokens": 64, "batch_size": 4, "checkpoints": 2, "device": "cpu"},
        "analysis": {"stages": ["behaviour"]},
    }
    study = parse_study("s", content)
    store, made = open_store(), dict(made_text(study))
    for step in study_graph(study):
        if step.name not in made:
            made[step.name] = store.build(step.spec_of(step.given(made)), lambda folder: FACTS)
    assert all(each.done for each in plan_artifacts(study))

    version = artifact_specs.code_version
    changed = {STAGES[stage].module for stage in ("corpus", "tokens")}
    monkeypatch.setattr(artifact_specs, "code_version", lambda m: "changed" if m in changed else version(m))
    corpus, tokenised, trained, measured = plan_artifacts(study)
    assert (corpus.done, corpus.why) == (tokenised.done, tokenised.why) == (False, "the code changed")
    assert trained.done
    assert measured.done
    for each in (trained, measured):
        assert each.why.endswith("; stays if its text comes out the same")


@pytest.mark.parametrize("repeated", [False, True])
def test_text_that_hardly_repeats_itself_is_warned_of_once_it_has_tokens(tmp_path, repeated):
    rng = random.Random(0)
    for i in range(60):
        halves = ["".join(rng.choices(string.ascii_letters, k=60)) for _ in range(2)]
        (tmp_path / f"{i}.txt").write_text(halves[0] + halves[not repeated])
    corpus = {"paths": [str(tmp_path / "*.txt")], "validation_fraction": 0.3}
    fields = {"corpus": corpus, "tokenizer": {"vocabulary": 257}, "model": {"n_ctx": 128}}
    study = parse_study("letters.toml", {"name": "letters", **fields})

    def warned() -> bool:
        return any("gives an induction head little to do" in warning for warning in training_warnings(study))

    assert not warned()
    made_text(study)
    assert warned() is not repeated
