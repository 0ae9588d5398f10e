"""Commands given studies of one's own: no study has to run for them."""

import json
import os
import subprocess
import sys

import pytest
from claimed_studies import CASES
from test_claims_command import record
from test_command_line import call

from headstream.tasks import places
from headstream.tasks.storage.artifact import Spec
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.studies.known_studies import find_study
from headstream.tasks.studies.own_names import reserve_name
from headstream.tasks.study.schema import read_study


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "400")


@pytest.fixture
def own(tmp_path):
    """A study of one's own that was to run, on itself as text."""
    path = tmp_path / "a.toml"
    path.write_text('name = "mine"\nquestion = "Why?"\n[corpus]\npaths = ["a.toml"]\n[grid]\nseed = [0, 1]\n')
    reserve_name(read_study(find_study(str(path))), find_study(str(path)))
    return path


def line_of(study: str, out: str) -> list[str]:
    """The line that `studies` has of a study, in cells."""
    (line,) = [line for line in out.splitlines() if line.split()[:1] == [study]]
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def put_record(study, failures=()) -> None:
    """The record that a run leaves, without what it is made from."""
    config = {"study": study.recorded, "failures": dict.fromkeys(failures, "why")}
    open_store().build(Spec("study", "v", config, {}, {}), lambda folder: {"study": study.name})


def test_studies_lists_ones_own_with_how_far_it_is(own, monkeypatch, capsys):
    assert line_of("mine", call(monkeypatch, capsys, "studies")[1]) == ["mine", "2", "not run", "Why?", str(own)]
    put_record(read_study(find_study("mine")))
    assert line_of("mine", call(monkeypatch, capsys, "studies")[1])[2] == "done"
    own.write_text(own.read_text().replace("[0, 1]", "[0, 1, 2]"))
    assert line_of("mine", call(monkeypatch, capsys, "studies")[1])[1:3] == ["3", "edited since it ran; not run"]
    own.write_text(own.read_text().replace("[0, 1, 2]", "[0, 1"))
    assert line_of("mine", call(monkeypatch, capsys, "studies")[1])[1] == "can't be read"
    own.unlink()
    assert line_of("mine", call(monkeypatch, capsys, "studies")[1])[2:] == ["done", "Why?", f"{own}, gone"]


def test_studies_counts_what_is_trained_on_the_same_text_only(own, monkeypatch, capsys):
    study = read_study(find_study("mine"))
    store = open_store()

    def train(corpus: str) -> None:
        def make(stage: str, config, **inputs):
            write = lambda folder: (folder / "x").write_text(corpus) and {}  # noqa: E731
            return store.build(Spec(stage, "v", config, inputs, {}), write)

        text = make("corpus", {"corpus": study.corpus.model_dump(mode="json") | {"paths": [corpus]}})
        tokens = make("tokens", study.tokenizer.model_dump(mode="json"), corpus=text)
        make("training", study.cells[0].trained_as, tokens=tokens)

    train("/another")
    assert line_of("mine", call(monkeypatch, capsys, "studies")[1])[2] == "not run"
    train(str(own))
    assert line_of("mine", call(monkeypatch, capsys, "studies")[1])[2] == "1 of 2 trained"
    put_record(study, failures=["seed=1"])
    assert line_of("mine", call(monkeypatch, capsys, "studies")[1])[2] == "1 of 2 failed"


def test_studies_imports_nothing_that_takes_seconds():
    code = (
        "import sys; from headstream.flows.studies_command import print_studies; print_studies(); print(*sys.modules)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=places.ROOT, capture_output=True, text=True, check=True, env=os.environ)
    assert not {"torch", "prefect", "pandas", "duckdb", "pyarrow", "numpy"} & {*done.stdout.split()}


def test_a_study_of_ones_own_is_planned_by_its_name_from_everywhere(own, monkeypatch, capsys):
    monkeypatch.chdir("/")
    code, out, err = call(monkeypatch, capsys, "plan", "mine", "--all")
    assert (code, err) == (0, "")
    assert "seed=1" in out
    own.unlink()
    code, _, err = call(monkeypatch, capsys, "plan", "mine")
    assert err.splitlines()[0] == f"headstream: {own} is gone, so mine is taken as it was when it last ran"
    assert code == 2  # its text was in that file, too


def test_results_are_found_by_name_whatever_became_of_the_file(own, tmp_path, monkeypatch, capsys):
    tables, _ = CASES["paths-sum"].tables("mine", [1e-6, 2e-6])
    record(tables, study="mine")
    for change in (lambda: None, lambda: own.write_text("name = "), own.unlink):
        change()
        code, out, err = call(monkeypatch, capsys, "claims", "mine", "--format", "json")
        assert (code, err) == (0, "")
        assert json.loads(out)[0]["claim_id"] == "paths-sum"
        assert call(monkeypatch, capsys, "diff", "mine", "mine")[0] == 0


def test_another_study_of_the_name_of_one_is_refused_before_anything_starts(own, tmp_path, monkeypatch, capsys):
    other = tmp_path / "other.toml"
    for name, where in (("quick", "ships"), ("mine", f"is in {own}")):
        other.write_text(f'name = "{name}"\n[corpus]\npaths = ["a.toml"]\n')
        code, out, err = call(monkeypatch, capsys, "run", str(other))
        assert (code, out) == (2, "")
        assert (
            f"other.toml uses the name '{name}', but a different study of that name {where}. Change the name, or" in err
        )
        assert err.count("\n") == 1
        assert "needs `--replace`" in call(monkeypatch, capsys, "plan", str(other))[1]


def test_a_plan_sums_up_what_is_alike(own, monkeypatch, capsys):
    own.write_text(own.read_text().replace("[0, 1]", json.dumps(list(range(60)))))
    code, out, _ = call(monkeypatch, capsys, "plan", "mine")
    assert code == 0
    assert ["training", "60", "models", "to", "run"] in [line.split()[:5] for line in out.splitlines()]
    assert ["corpus", "documents", "to", "run"] in [line.split()[:4] for line in out.splitlines()]
    assert len(out.splitlines()) < 40
    lines = call(monkeypatch, capsys, "plan", "mine", "--all")[1].splitlines()
    assert sum(line.split()[:1] == ["training"] for line in lines) == 60
