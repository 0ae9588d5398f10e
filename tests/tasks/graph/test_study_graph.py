"""What a study consists of: which steps, what each reads, and that nothing is declared twice or missing."""

from pathlib import Path

import pytest
from tiny import tiny_text

from headstream.tasks.errors import UserError
from headstream.tasks.graph.study_graph import _require_own_names, study_graph
from headstream.tasks.results.deliveries import FILLED_HERE
from headstream.tasks.results.tables import tables
from headstream.tasks.study.analyses import ANALYSES, DECLARED
from headstream.tasks.study.schema import parse_study
from headstream.tasks.study.stage import resolve
from headstream.tasks.study.stages import STAGES

ROLES = {"corpus", "tokens", "model", "study"}


def graph(**fields):
    content = {"name": "s", "corpus": {"paths": [str(tiny_text())]}, **fields}
    return study_graph(parse_study("s.toml", content))


def test_every_step_comes_after_those_that_it_reads():
    seen = set()
    for step in graph(grid={"seed": [0, 1]}, costs={"n_heads": [1, 2]}):
        assert {*step.inputs.values()} <= seen
        assert {*step.inputs} == {*step.stage.reads}
        assert step.name not in seen
        seen.add(step.name)


def test_a_study_has_its_text_once_and_its_analyses_for_each_model():
    steps = graph(grid={"seed": [0, 1]})
    names = [step.name for step in steps]
    assert names[:2] == [("corpus", "documents"), ("tokens", "tokens")]
    assert [step.is_shared for step in steps] == [True, True] + [False] * (len(steps) - 2)
    for seed in (0, 1):
        own = [stage for stage, subject in names if subject == f"seed={seed}"]
        assert own == ["training", *(name for name in ANALYSES if name not in ("prompt-circuits", "set-free"))]
    assert [step.run_name for step in steps[:4]] == [
        "read the corpus", "tokenise", "train seed=0", "measure behaviour of seed=0",
    ]  # fmt: skip


def test_prompts_are_read_once_and_asked_of_each_model():
    steps = graph(grid={"seed": [0, 1]}, prompts=[{"set": "repeats"}])
    (prompts,) = [step for step in steps if step.stage.name == "prompts"]
    assert prompts.run_name == "read the prompts repeats"
    asked = [step for step in steps if step.stage.name == "prompt-circuits"]
    assert [step.subject for step in asked] == ["seed=0", "seed=1"]
    assert {step.inputs["prompts"] for step in asked} == {prompts.name}


def test_an_edit_of_one_row_measures_that_set_again_and_nothing_else(tmp_path):
    files = {name: tmp_path / f"{name}.csv" for name in ("mine", "yours")}
    for path in files.values():
        path.write_text("prompt,corrupt,answer,wrong\nthe keys,the key, are, is\n")
    steps = graph(prompts=[{"name": name, "path": str(path)} for name, path in files.items()])
    read = {step.part: step for step in steps if step.stage.name == "prompts"}
    before = {part: step.spec_of({}).key for part, step in read.items()}
    files["mine"].write_text("prompt,corrupt,answer,wrong\nthe keys,the key, are, was\n")
    assert [part for part, step in read.items() if step.spec_of({}).key != before[part]] == ["mine"]
    asked = {step.name.stage: step.inputs["prompts"] for step in steps if step.stage.name == "prompt-circuits"}
    assert asked == {f"prompt-circuits {part}": step.name for part, step in read.items()}


def test_a_model_from_elsewhere_has_tokens_of_its_own(tmp_path):
    missing = {"name": "mine", "path": str(tmp_path / "none")}
    with pytest.raises(UserError, match=r"\[\[models\]\] mine"):
        graph(models=[missing])


def test_every_stage_names_a_function_that_is_there():
    for stage in STAGES.values():
        assert callable(resolve(stage.work)), stage.name
        assert {*stage.reads} <= ROLES | {*DECLARED}, stage.name
        assert not stage.fingerprint or callable(resolve(stage.fingerprint))


def test_every_table_is_written_by_a_stage_or_by_the_index():
    written = {table for stage in STAGES.values() for table in stage.writes}
    assert written | FILLED_HERE == tables().keys()
    assert not written & FILLED_HERE


def test_incidental_files_are_files_of_their_stage():
    for stage in STAGES.values():
        assert {Path(name).stem for name in stage.incidental if name.endswith(".parquet")} <= {*stage.writes}


def test_a_model_from_elsewhere_and_a_trained_one_have_different_names():
    steps = graph()
    with pytest.raises(UserError, match="Two models of the study are called 'model'"):
        _require_own_names([*steps, *steps])
