"""What is compiled while text is made."""

from contextlib import contextmanager

import pytest

from headstream.tasks.machines.child_process import ProcessDied
from headstream.tasks.steps import compile_steps
from headstream.tasks.steps.compile_steps import compile_for, compiles
from headstream.tasks.study.schema import parse_study


def study(jobs: int = 2, gpus: float = 1.0, **training):
    return parse_study("s", {"name": "s", "training": training, "resources": {"jobs": jobs, "gpus": gpus}})


def test_what_could_not_be_compiled_ahead_is_told_by_the_model_that_needs_it(monkeypatch):
    compiled = []

    def killed(call, place, kind, d_vocab, environment):
        compiled.append(kind)
        raise ProcessDied("compile_kind: its process was killed by signal 9 before it was done.")

    monkeypatch.setattr(compile_steps, "wait_for_fork_server", lambda: None)
    monkeypatch.setattr(compile_steps, "run_in_process", killed)
    asked = study(compile="always")
    assert compiles(asked)
    compile_for(asked, asked.cells, lambda: False)  # in a thread, where it would be a traceback
    assert len(compiled) == 1
    compile_for(asked, asked.cells, lambda: True)
    assert len(compiled) == 1  # trainings that have begun compile for themselves


def test_a_study_that_compiles_nothing_waits_for_nothing(monkeypatch):
    monkeypatch.setattr(compile_steps, "wait_for_fork_server", lambda: pytest.fail("there is nothing to compile"))
    asked = study(compile="never")
    assert not compiles(asked)
    compile_for(asked, asked.cells, lambda: False)


def test_what_is_compiled_ahead_for_a_gpu_holds_a_share_of_one(monkeypatch):
    seen = []

    @contextmanager
    def slot(share):
        seen.append(share)
        yield {"CUDA_VISIBLE_DEVICES": "3"}
        seen.append("given back")

    monkeypatch.setattr(compile_steps, "wait_for_fork_server", lambda: None)
    monkeypatch.setattr(compile_steps, "gpu_slot", slot)
    monkeypatch.setattr(compile_steps, "run_in_process", lambda *work, environment: seen.append(environment))
    asked = study(gpus=0.5, compile="always", device="cuda")
    compile_for(asked, asked.cells, lambda: False)
    assert seen == [0.5, {"CUDA_VISIBLE_DEVICES": "3"}, "given back"]


def test_kinds_are_compiled_once_and_no_more_than_models_are_made_at_once(monkeypatch):
    seen = []
    monkeypatch.setattr(compile_steps, "wait_for_fork_server", lambda: None)
    monkeypatch.setattr(compile_steps, "run_in_process", lambda call, place, kind, *_, **__: seen.append(kind))
    grid = {"d_model": [16, 32, 64], "seed": [0, 1]}
    content = {"name": "s", "grid": grid, "model": {"n_heads": 2}, "training": {"compile": "always"}}
    asked = parse_study("s", {**content, "resources": {"jobs": 2}})
    compile_for(asked, asked.cells, lambda: False)
    assert [kind.architecture.d_model for kind in seen] == [64, 32]
