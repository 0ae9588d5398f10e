"""Heads that interventions name by their role in the model without them, from what was measured of that model."""

from types import SimpleNamespace

import pytest

from headstream.models.nodes import Head
from headstream.tasks.graph import base_roles
from headstream.tasks.graph.base_roles import with_named_heads
from headstream.tasks.graph.outcomes import outcomes
from headstream.tasks.graph.scheduling import in_working_order
from headstream.tasks.graph.step import LeftOut, StepName
from headstream.tasks.graph.study_graph import study_graph
from headstream.tasks.results.tables import write_table
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.study.schema import parse_study

STAGES = ["behaviour", "activation-circuits", "redundancy"]


@pytest.fixture(scope="module")
def study():
    silenced = {name: {"interventions": [{"kind": "silence", "heads": name}]} for name in ("writer", "induction")}
    clamped = {"clamped": {"interventions": [{"kind": "clamp", "heads": ["L0H0"], "pattern": "previous"}]}}
    fields = {"name": "s", "variants": {"base": {}, **silenced, **clamped}}
    return parse_study("s", {**fields, "analysis": {"stages": [*STAGES, "set-free"]}})


def measured(folder, induction: float, writers: list[str]) -> dict[str, SimpleNamespace]:
    """Artifacts of a base: its training, and two analyses of it."""
    folders = {role: folder / role for role in ("base", "behaviour", "activation-circuits")}
    for own in folders.values():
        own.mkdir(parents=True)
    copies = {"induction_copying_logit": 1.0, "induction_copying_logit_sem": 0.1}
    heads = [
        {"model_id": "m", "step": step, "layer": 1, "head": head, "induction_random_period": score, **copies}
        for step, head, score in ((5, 0, 0.9), (10, 0, 0.0), (10, 2, induction), (10, 3, induction - 0.1))
    ]
    write_table(folders["base"], "models", [{"model_id": "m", "name": "2L4H", "n_layers": 2, "seed": 0}])
    write_table(folders["behaviour"], "heads", heads)
    write_table(folders["behaviour"], "evaluations", [{"model_id": "m", "step": 10, "tokens": 100}])
    place = {"model_id": "m", "reader_layer": 1, "reader_head": 2, "kind": "K", "writers": writers}
    checks = [{**place, "prefix_matching": 0.6, "prefix_matching_without": 0.1}]
    write_table(folders["activation-circuits"], "joint_checks", checks)
    return {role: SimpleNamespace(folder=own) for role, own in folders.items()}


@pytest.mark.parametrize(("place", "head"), [(1, Head(0, 3)), (2, Head(1, 2))])
def test_a_role_is_the_head_that_reports_say_has_it(study, tmp_path, place, head):
    cell = study.cells[place]
    named = with_named_heads(cell, "base", measured(tmp_path, 0.5, ["L0H3", "L0H1"]))
    assert [own.named_heads for own in named.training.interventions] == [[head]]
    assert named.trained_as != cell.trained_as


@pytest.mark.parametrize(
    ("place", "induction", "writers", "why"),
    [(1, 0.5, [], " that reads.*keys"), (1, 0.1, ["L0H3"], " that reads.*keys"), (2, 0.1, [], "")],
)
def test_without_such_a_head_the_model_is_left_out(study, tmp_path, place, induction, writers, why):
    with pytest.raises(LeftOut, match=f"left out: base has no induction head{why}$"):
        with_named_heads(study.cells[place], "base", measured(tmp_path, induction, writers))


def test_it_waits_for_its_base_to_be_measured_and_others_do_not(study):
    steps = study_graph(study)
    trainings = {step.subject: step for step in steps if step.makes_model}
    writer, induction = (trainings[cell.label] for cell in study.cells[1:3])
    base = study.cells[0].label
    assert {*writer.inputs} == {"tokens", "base", "behaviour", "activation-circuits"}
    assert {*induction.inputs} == {"tokens", "base", "behaviour"}
    assert induction.inputs["behaviour"] == StepName("behaviour", base)
    order = in_working_order([step for step in steps if not step.is_shared], jobs=2)
    seen = {step.name for step in steps if step.is_shared}
    for step in order:
        assert {*step.inputs.values()} <= seen
        seen.add(step.name)
    assert order[1].subject == study.cells[3].label


def test_stages_that_know_no_clamp_do_not_measure_a_model_that_ends_with_one(study):
    by_cell = {cell.label: [] for cell in study.cells}
    for step in study_graph(study):
        if step.measures_model:
            by_cell[step.subject].append(step.stage.name)
    assert list(by_cell.values()) == [
        [*STAGES],
        [*STAGES, "set-free"],
        [*STAGES, "set-free"],
        ["behaviour", "set-free"],
    ]


def test_what_is_left_out_is_recorded_so_and_is_no_failure(study, monkeypatch):
    steps = [step for step in study_graph(study) if step.subject == study.cells[2].label]
    given = Artifact("folder", SimpleNamespace(stage="x", facts={"model_id": "m"}))
    made = {name: given for step in steps for name in step.inputs.values()}
    monkeypatch.setattr(base_roles, "_head_of", lambda role, folders: None)
    monkeypatch.setattr(Artifact, "folder", "folder", raising=False)
    why = steps[0].left_out(made)
    assert isinstance(why, LeftOut)
    made[steps[0].name] = why
    for step in steps[1:]:
        assert step.left_out(made) is why
        made[step.name] = why
    (outcome,) = outcomes(steps, made)
    assert outcome.failure is None
    assert outcome.left_out == "left out: variant=base has no induction head"
    assert not outcome.artifacts
