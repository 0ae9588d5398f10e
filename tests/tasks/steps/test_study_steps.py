"""Submitting the steps of a study's models, and what becomes of a step whose input failed."""

from types import SimpleNamespace

import pytest

from headstream.tasks.errors import WorkError
from headstream.tasks.graph.step import Step, StepName
from headstream.tasks.steps.study_steps import make_models
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.study.stages import STAGES

TOKENS = StepName("tokens", "tokens")
TEXT = {TOKENS: Artifact("tokens", SimpleNamespace())}


def step(stage: str, subject: str, gpus: float, **options) -> Step:
    return Step(STAGES[stage], subject, lambda inputs: "spec", lambda spec, inputs: {}, gpus=gpus, **options)


def model_and_measure(subject: str, training_gpus: float, measuring_gpus: float) -> list[Step]:
    model = step("training", subject, training_gpus, inputs={"tokens": TOKENS}, cell_id_of=lambda spec: subject)
    return [model, step("behaviour", subject, measuring_gpus, inputs={"model": model.name, "tokens": TOKENS})]


STEPS = [*model_and_measure("seed=0", 0.5, 0.25), *model_and_measure("seed=1", 1.0, 0.0)]


class Future:
    """The future of a step, with what it comes to once it has been waited for."""

    def __init__(self, outcome):
        self.outcome, self.waited = outcome, False

    def wait(self):
        self.waited = True

    def result(self, raise_on_failure):
        assert self.waited
        assert not raise_on_failure
        return self.outcome


def made_by(submit):
    return make_models(STEPS, TEXT, submit, jobs=1)


def test_each_step_is_submitted_with_its_own_share_of_a_gpu_and_what_it_reads():
    submitted = {}

    def submit(task, gpus, *, step, inputs):
        submitted[step.name] = task.name, gpus, inputs
        return Future(Artifact(step.subject, SimpleNamespace()))

    made = made_by(submit)
    assert {name: (task, gpus) for name, (task, gpus, _) in submitted.items()} == {
        ("training", "seed=0"): ("training", 0.5),
        ("behaviour", "seed=0"): ("behaviour", 0.25),
        ("training", "seed=1"): ("training", 1.0),
        ("behaviour", "seed=1"): ("behaviour", 0.0),
    }
    *_, inputs = submitted["behaviour", "seed=1"]
    assert inputs["tokens"] is TEXT[TOKENS]
    assert inputs["model"].outcome is made["training", "seed=1"]
    assert made.keys() == {TOKENS, *submitted}


def test_a_step_whose_input_failed_takes_its_error_and_is_not_asked_for_a_result():
    error = WorkError("too little memory")

    class Unasked(Future):
        def result(self, raise_on_failure):
            pytest.fail("a step that had no input has no result")

    def submit(task, gpus, *, step, inputs):
        if step.subject == "seed=1":
            return Future(step.name)
        return Future(error) if step.makes_model else Unasked(None)

    made = made_by(submit)
    assert made["training", "seed=0"] is made["behaviour", "seed=0"] is error
    assert made["behaviour", "seed=1"] == ("behaviour", "seed=1")
