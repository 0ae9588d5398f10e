"""What is compiled while text is made, and what comes of a model whose stages fail."""

from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pytest

from headstream.tasks.errors import WorkError
from headstream.tasks.machines.child_process import ProcessDied
from headstream.tasks.steps import model_steps
from headstream.tasks.study.schema import parse_study


def test_what_could_not_be_compiled_ahead_is_told_by_the_model_that_needs_it(monkeypatch):
    compiled = []

    def killed(compile_kind, kind, d_vocab, environment):
        compiled.append(kind)
        raise ProcessDied("compile_kind: its process was killed by signal 9 before it was done.")

    monkeypatch.setattr(model_steps, "wait_for_fork_server", lambda: None)
    monkeypatch.setattr(model_steps, "run_in_process", killed)
    study = parse_study("s", {"name": "s", "training": {"compile": "always"}})
    ahead = partial(model_steps.compile_ahead, study.cells, 512, most=2, gpu_share=1.0)
    ahead(begun=lambda: False)  # in a thread, where it would be a traceback
    assert len(compiled) == 1
    ahead(begun=lambda: True)
    assert len(compiled) == 1  # trainings that have begun compile for themselves


def test_a_study_that_compiles_nothing_waits_for_nothing(monkeypatch):
    monkeypatch.setattr(model_steps, "wait_for_fork_server", lambda: pytest.fail("there is nothing to compile"))
    study = parse_study("s", {"name": "s", "training": {"compile": "never"}})
    model_steps.compile_ahead(study.cells, 512, most=2, gpu_share=1.0, begun=lambda: False)


def test_what_is_compiled_ahead_for_a_gpu_holds_a_share_of_one(monkeypatch):
    seen = []

    @contextmanager
    def slot(share):
        seen.append(share)
        yield {"CUDA_VISIBLE_DEVICES": "3"}
        seen.append("given back")

    monkeypatch.setattr(model_steps, "wait_for_fork_server", lambda: None)
    monkeypatch.setattr(model_steps, "gpu_slot", slot)
    monkeypatch.setattr(model_steps, "run_in_process", lambda *work, environment: seen.append(environment))
    study = parse_study("s", {"name": "s", "training": {"compile": "always", "device": "cuda"}})
    model_steps.compile_ahead(study.cells, 512, most=2, gpu_share=0.5, begun=lambda: False)
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
    outcome = model_steps.outcome(cell, artifact("tokens"), future(model), [*map(future, stages)])
    assert (outcome.model_id, outcome.artifacts, outcome.failure) == ("m", [model, first, last], "too little memory")
    assert model_steps.outcome(cell, artifact("tokens"), future(model), [future(first)]).failure is None


def test_a_model_that_fails_has_nothing_measured(monkeypatch):
    monkeypatch.setattr(model_steps, "model_spec", lambda cell, tokens: None)
    monkeypatch.setattr(model_steps, "cell_id", lambda cell, spec: "of the cell")
    (cell,) = parse_study("s", {"name": "s"}).cells
    never = SimpleNamespace(wait=lambda: None, result=lambda raise_on_failure: pytest.fail("there is no result"))
    outcome = model_steps.outcome(cell, artifact("tokens"), future(WorkError("diverged")), [never])
    assert (outcome.model_id, outcome.artifacts, outcome.failure) == ("of the cell", [], "diverged")
