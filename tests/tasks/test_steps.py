"""What a step does outside of a flow is tried again as in one; and what is compiled meanwhile."""

from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pytest

from tasks import steps
from tasks.errors import WorkError
from tasks.machines.child_process import ProcessDied
from tasks.study.corpus_config import CorpusConfig
from tasks.study.schema import parse_study


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(steps, "RETRY_SECONDS", (0, 0))


def failing(*errors):
    """A step that meets these errors one after the other, and then has a result."""
    waiting = iter(errors)

    @steps.step("try")
    def work():
        for error in waiting:
            raise error
        return "done"

    return work


@pytest.mark.parametrize("n", [0, 1, 2])
def test_what_passes_is_tried_again(n):
    assert steps.alone(failing(*[OSError("busy")] * n)) == "done"


def test_what_does_not_pass_is_told():
    with pytest.raises(OSError, match="busy"):
        steps.alone(failing(*[OSError("busy")] * 3))
    with pytest.raises(WorkError, match="diverged"):
        steps.alone(failing(WorkError("diverged")))


def test_text_that_changes_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    file = tmp_path / "text" / "a.txt"
    file.parent.mkdir()
    file.write_text("\n".join(f"word number {n}" for n in range(900)))
    write, texts = steps.write_corpus, iter(["\n".join(f"another line, {n}" for n in range(700))])

    def write_and_change(*arguments, **options):
        facts = write(*arguments, **options)
        file.write_text(next(texts, file.read_text()))
        return facts

    monkeypatch.setattr(steps, "write_corpus", write_and_change)
    corpus = steps.alone(steps.read_corpus, CorpusConfig(paths=(str(file.parent),), document_bytes=256))
    assert corpus.manifest.facts["bytes"] == len(file.read_text())


def test_what_could_not_be_compiled_ahead_is_told_by_the_model_that_needs_it(monkeypatch):
    compiled = []

    def killed(compile_kind, kind, d_vocab, environment):
        compiled.append(kind)
        raise ProcessDied("compile_kind: its process was killed by signal 9 before it was done.")

    monkeypatch.setattr(steps, "wait_for_fork_server", lambda: None)
    monkeypatch.setattr(steps, "run_in_process", killed)
    study = parse_study("s", {"name": "s", "training": {"compile": "always"}})
    ahead = partial(steps.compile_ahead, study.cells, 512, most=2, gpu_share=1.0)
    ahead(begun=lambda: False)  # in a thread, where it would be a traceback
    assert len(compiled) == 1
    ahead(begun=lambda: True)
    assert len(compiled) == 1  # trainings that have begun compile for themselves


def test_what_is_compiled_ahead_for_a_gpu_holds_a_share_of_one(monkeypatch):
    seen = []

    @contextmanager
    def slot(share):
        seen.append(share)
        yield {"CUDA_VISIBLE_DEVICES": "3"}
        seen.append("given back")

    monkeypatch.setattr(steps, "wait_for_fork_server", lambda: None)
    monkeypatch.setattr(steps, "gpu_slot", slot)
    monkeypatch.setattr(steps, "run_in_process", lambda *work, environment: seen.append(environment))
    study = parse_study("s", {"name": "s", "training": {"compile": "always", "device": "cuda"}})
    steps.compile_ahead(study.cells, 512, most=2, gpu_share=0.5, begun=lambda: False)
    assert seen == [0.5, {"CUDA_VISIBLE_DEVICES": "3"}, "given back"]


# Outcomes


def future(result):
    return SimpleNamespace(wait=lambda: None, result=lambda raise_on_failure: result)


def artifact(name):
    return SimpleNamespace(name=name, manifest=SimpleNamespace(facts={"model_id": "m"}))


def test_a_stage_that_fails_takes_no_other_from_the_record():
    (cell,) = parse_study("s", {"name": "s"}).cells
    model, first, last = map(artifact, ("model", "first", "last"))
    stages = [first, WorkError("too little memory"), last, WorkError("again")]
    outcome = steps.outcome(cell, artifact("tokens"), future(model), [*map(future, stages)])
    assert (outcome.model_id, outcome.artifacts, outcome.failure) == ("m", [model, first, last], "too little memory")
    assert steps.outcome(cell, artifact("tokens"), future(model), [future(first)]).failure is None


def test_a_model_that_fails_has_nothing_measured(monkeypatch):
    monkeypatch.setattr(steps, "model_spec", lambda cell, tokens: None)
    monkeypatch.setattr(steps, "cell_id", lambda cell, spec: "of the cell")
    (cell,) = parse_study("s", {"name": "s"}).cells
    never = SimpleNamespace(wait=lambda: None, result=lambda raise_on_failure: pytest.fail("there is no result"))
    outcome = steps.outcome(cell, artifact("tokens"), future(WorkError("diverged")), [never])
    assert (outcome.model_id, outcome.artifacts, outcome.failure) == ("of the cell", [], "diverged")
