"""What comes of a model whose steps fail."""

from types import SimpleNamespace

import pytest

from headstream.tasks.errors import WorkError
from headstream.tasks.graph.outcomes import outcomes
from headstream.tasks.graph.step import Step, StepName
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.study.stages import STAGES, TRAINING

NAMES = ("behaviour", "probes", "pruning", "importance")
TOKENS = StepName("tokens", "tokens")


def step(stage: str, **options) -> Step:
    return Step(STAGES[stage], "seed=0", lambda inputs: "spec", lambda spec, inputs: {}, **options)


MODEL = step("training", inputs={"tokens": TOKENS}, cell_id_of=lambda spec: f"of the {spec}")
STEPS = [MODEL, *(step(name, inputs={"model": MODEL.name}) for name in NAMES)]


def artifact(stage: str) -> Artifact:
    return Artifact(stage, SimpleNamespace(stage=stage, facts={"model_id": "m"}))


@pytest.fixture
def made():
    return {TOKENS: artifact("tokens"), **{each.name: artifact(each.stage.name) for each in STEPS}}


def test_a_stage_that_fails_takes_no_other_from_the_record(made):
    (outcome,) = outcomes(STEPS, made)
    assert (outcome.cell, outcome.model_id, outcome.failure) == ("seed=0", "m", None)
    made[StepName("probes", "seed=0")] = WorkError("too little memory")
    made[StepName("importance", "seed=0")] = WorkError("again")
    (outcome,) = outcomes(STEPS, made)
    assert [each.manifest.stage for each in outcome.artifacts] == ["training", "behaviour", "pruning"]
    assert (outcome.model_id, outcome.failure) == ("m", "too little memory")


def test_a_model_that_fails_keeps_its_name(made):
    error = WorkError("diverged")
    made |= {each.name: error for each in STEPS}
    (outcome,) = outcomes(STEPS, made)
    assert (outcome.model_id, outcome.artifacts, outcome.failure) == ("of the spec", [], "diverged")
    assert TRAINING.title.format(subject="seed=0") == MODEL.run_name
