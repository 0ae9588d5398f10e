"""A study run from Python: by name, by path, or as a dictionary, with the command's own mistakes."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import headstream as hs
from headstream import started_study
from headstream.started_study import _reserved
from headstream.tasks.studies.known_studies import find_study
from headstream.tasks.study.schema import parse_study, read_study


def test_a_dictionary_is_run_under_its_name(home, parts, monkeypatch):
    """As the command would run it: README's example has that itself run a study."""
    commands = []
    monkeypatch.setattr(started_study, "run_command", commands.append)
    text = Path(parts["corpus"]["paths"][0])
    monkeypatch.chdir(text.parent)
    grid = {"n_heads": ((2, 3),), "seed": np.arange(2)}
    results = hs.run({**parts, "corpus": {**parts["corpus"], "paths": [Path(text.name)]}, "grid": grid}, jobs=1)
    assert commands == [["run", "ours", "--jobs", "1"]]
    assert results.study == "ours"
    assert read_study(find_study("ours")).recorded == parse_study("ours.toml", parts).recorded


@pytest.fixture
def empty_home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    return tmp_path


def test_a_dictionary_may_change_under_its_name_and_is_not_changed(empty_home):
    for seeds in ([0], [0, 1]):
        given = {
            "name": "mine",
            "corpus": {"paths": ["a.txt"]},
            "prompts": [{"set": "repeats"}],
            "grid": {"seed": seeds},
        }
        before = json.dumps(given)
        assert _reserved(given, replace=False) == "mine"
        assert json.dumps(given) == before
        known = read_study(find_study("mine"))
        assert known.n_models == len(seeds)
        assert known.corpus.paths == (os.path.abspath("a.txt"),)
        assert [prompts.set for prompts in known.analysis.prompts.sets] == ["repeats"]


def test_a_study_that_is_read_already_is_taken_as_it_is(empty_home, parts):
    study = parse_study("ours.toml", parts)
    assert read_study(find_study(_reserved(study, replace=False))).recorded == study.recorded


@pytest.mark.parametrize(
    ("study", "options", "message"),
    [
        ("nothing.toml", {}, "there is no study"),
        (None, {}, "a study must be text, got None"),
        ("smoke", {"jobs": 0}, "jobs must be a whole number from 1 on, got 0"),
        ("smoke", {"jobs": "2"}, "jobs must be a whole number from 1 on, got '2'"),
        ({"grid": {}}, {}, r"^the study: name is missing\. Add it\.$"),
        ({"name": "x", "grd": {}}, {}, r"no field 'grd'\. Did you mean 'grid'"),
        ({"name": "x", "grid": {"d_model": 3}}, {}, r"\[grid\] d_model: must be a list in \[ \], got 3"),
        ({"name": "x", "grid": {"d_model": [{1}]}}, {}, "d_model"),
        ({"name": "quick"}, {}, "a different study of that name ships"),
    ],
)
def test_a_mistake_is_one_line(empty_home, study, options, message):
    with pytest.raises(hs.UserError, match=message) as error:
        hs.run(study, **options)
    assert "\n" not in str(error.value)


def test_what_a_run_in_its_own_process_refuses_is_an_error_here(home, tmp_path):
    (tmp_path / "textless.toml").write_text('name = "textless"\ncorpus.paths = ["nothing.txt"]')
    with pytest.raises(hs.UserError, match=r"^there is nothing to read at .*nothing\.txt"):
        hs.run(str(tmp_path / "textless.toml"))
