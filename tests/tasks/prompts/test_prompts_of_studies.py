"""[[prompts]] in a study: what is read, and what is refused in the words of a study file."""

import pytest

from headstream.tasks.errors import UserError
from headstream.tasks.prompts.prompt_writing import prompts_fingerprint, write_prompts
from headstream.tasks.prompts.written_prompts import read_written
from headstream.tasks.study.schema import parse_study


def study(*prompts, **more):
    return parse_study("s.toml", {"name": "s", "prompts": list(prompts), **more})


def test_sets_stand_beside_what_analysis_says_of_them():
    own = study({"set": "ioi"}, {"name": "mine", "path": "a.csv"}, analysis={"prompts": {"seed": 3}})
    assert [one.name for one in own.analysis.prompts.sets] == ["ioi", "mine"]
    assert own.analysis.prompts.seed == 3
    assert parse_study("again", own.recorded).analysis == own.analysis


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ({"set": "iio"}, r"\[\[prompts\]\] 1: set: must be 'repeats', 'ioi'.*got 'iio'"),
        ({"sett": "ioi"}, r"\[\[prompts\]\] 1: has no field 'sett'. Did you mean 'set'\?"),
        ({"path": "a.csv"}, "prompts, item 1: a file of prompts needs a name"),
        ({"set": "ioi", "path": "a.csv"}, "prompts, item 1: one of set and path must be given"),
        ({"set": "ioi", "name": "mine"}, "a set that ships keeps its name, got 'mine'"),
    ],
)
def test_mistakes_are_told_as_a_study_file_has_them(prompts, message):
    with pytest.raises(UserError, match=message):
        study(prompts)


def test_two_sets_of_one_name_are_refused():
    with pytest.raises(UserError, match=r"two of \[\[prompts\]\] have the name 'ioi'"):
        study({"set": "ioi"}, {"set": "ioi"})


def test_an_edit_of_a_file_changes_what_decides_its_artifact(tmp_path):
    path = tmp_path / "a.csv"
    config = study({"name": "mine", "path": str(path)}).analysis.prompts
    found = []
    for wrong in ("is", "was"):
        path.write_text(f"prompt,corrupt,answer,wrong\nthe keys,the key, are, {wrong}\n")
        found.append(prompts_fingerprint(config))
        write_prompts(config, tmp_path, lambda fraction: None)
        ((pair,),) = read_written(tmp_path).values()
        assert pair.wrong == (f" {wrong}",)
    assert found[0] != found[1]
    path.unlink()
    with pytest.raises(UserError, match=r"can't be read: No such file or directory\. Correct the path of 'mine'"):
        prompts_fingerprint(config)
