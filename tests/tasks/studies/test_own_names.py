"""Studies of one's own: found by name from everywhere, and never in another one's place unasked."""

import json
import shutil

import pytest

from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.storage.artifact import Spec
from headstream.tasks.storage.store import Store
from headstream.tasks.studies.known_studies import find_study, known_studies
from headstream.tasks.studies.own_names import conflicting_study, reserve_name, study_file_of
from headstream.tasks.studies.remembered_studies import remembered
from headstream.tasks.study.schema import complete_study, parse_study, read_study


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path / "home"))


def written(path, **content):
    """A study file with these fields."""
    path.parent.mkdir(exist_ok=True)
    fields = {"name": "mine"} | content
    path.write_text("# by hand\n" + "\n".join(f"{name} = {json.dumps(value)}" for name, value in fields.items()))
    return path


def take(path, **how):
    """What `headstream run` does with a name."""
    file = find_study(str(path))
    reserve_name(read_study(file), file, **how)


def test_a_study_that_was_to_run_is_found_by_name_from_everywhere(tmp_path, monkeypatch):
    path = written(tmp_path / "studies" / "a.toml", question="Why?")
    monkeypatch.chdir(path.parent)
    take("a.toml")
    monkeypatch.chdir("/")
    assert known_studies()[-1] == "mine"
    assert find_study("mine").path == path
    assert read_study(find_study("mine")).question == "Why?"
    with pytest.raises(UserError, match="Did you mean mine"):
        find_study("mine2")
    with pytest.raises(UserError, match="there is no shipped study 'mine'"):
        complete_study("mine")


def test_its_text_is_where_it_was(tmp_path, monkeypatch):
    path = written(tmp_path / "studies" / "a.toml", corpus={})
    path.write_text('name = "mine"\n[corpus]\npaths = ["text/*.txt", "../b.txt", "/c", "~/d"]')
    monkeypatch.chdir("/")
    found = read_study(find_study(str(path))).corpus.paths
    assert found == (str(tmp_path / "studies" / "text" / "*.txt"), str(tmp_path / "b.txt"), "/c", "~/d")


def test_an_edited_file_is_the_same_study(tmp_path):
    path = written(tmp_path / "a.toml")
    take(path)
    written(path, question="Why?", max_models=7)
    take(path)
    assert read_study(find_study("mine")).question == "Why?"


def test_a_file_that_asks_the_same_is_the_same_study(tmp_path):
    path = written(tmp_path / "a.toml")
    take(path)
    moved = tmp_path / "b.toml"
    shutil.move(path, moved)
    moved.write_text(moved.read_text() + '\nrunner = "ray"')
    take(moved)
    assert find_study("mine").path == moved


def test_another_study_of_the_same_name_is_refused(tmp_path):
    first, second = written(tmp_path / "a.toml"), written(tmp_path / "b.toml", max_models=7)
    take(first)
    with pytest.raises(
        UserError, match=rf"b\.toml uses .* 'mine', but a different study of that name is in {first}\. .*--replace"
    ):
        take(second)
    assert find_study("mine").path == first
    take(second, replace=True)
    assert find_study("mine").path == second
    with pytest.raises(UserError):
        take(first)


def test_a_shipped_studys_name_is_taken_only_if_that_is_meant(tmp_path):
    own, shipped = written(tmp_path / "a.toml", name="quick"), places.STUDIES / "quick.toml"
    copy = tmp_path / "copy.toml"
    shutil.copy(shipped, copy)
    take(copy)
    take("quick")
    take(shipped)
    with pytest.raises(
        UserError, match=r"a\.toml uses .* 'quick', but a different study of that name ships. Change the name"
    ):
        take(own)
    take(own, replace=True)
    assert find_study("quick").path == own
    with pytest.raises(UserError, match=f"is in {own}"):
        take(shipped)
    take(shipped, replace=True)
    assert find_study("quick").ships
    assert remembered("quick") is None


def test_a_study_whose_file_is_gone_is_as_it_was(tmp_path):
    path = written(tmp_path / "a.toml", question="Why?")
    take(path)
    path.unlink()
    file = find_study("mine")
    assert file.note == f"{path} is gone, so mine is taken as it was when it last ran"
    assert read_study(file).question == "Why?"
    written(path, name="other")
    assert find_study("mine").note.startswith(f"{path} holds 'other' now")
    assert read_study(find_study("mine")).question == "Why?"
    path.write_text("name = ")
    with pytest.raises(UserError, match=r"a\.toml is not valid TOML"):  # an edit that went wrong, not another study
        read_study(find_study("mine"))


def test_a_study_that_came_through_prefect_has_a_name_too(tmp_path):
    sent = parse_study("the study", {"name": "mine", "grid": {"seed": [0, 1]}})
    reserve_name(sent, study_file_of(sent))
    assert read_study(find_study("mine")).recorded == sent.recorded
    again = parse_study("the study", {"name": "mine", "grid": {"seed": [0, 1, 2]}})
    reserve_name(again, study_file_of(again))
    path = written(tmp_path / "a.toml")
    with pytest.raises(UserError, match="a different study of that name came through Prefect"):
        take(path)
    take(path, replace=True)
    with pytest.raises(UserError, match=f"is in {path}"):
        reserve_name(sent, study_file_of(sent))
    quick = parse_study("the study", {"name": "quick"})
    with pytest.raises(UserError, match="ships"):
        reserve_name(quick, study_file_of(quick))
    shipped = read_study(find_study("quick"))
    assert study_file_of(shipped).ships
    assert not conflicting_study(shipped, study_file_of(shipped))


def test_a_study_that_an_earlier_release_ran_is_found_by_its_record(tmp_path):
    study = parse_study("s", {"name": "mine", "question": "Why?"})
    spec = Spec("study", "v", {"study": study.recorded, "failures": {}}, {}, {})
    Store(places.store_folder()).build(spec, lambda folder: {"study": "mine"})
    assert read_study(find_study("mine")).recorded == study.recorded
    take(written(tmp_path / "a.toml", max_models=7))  # perhaps the very file that ran then


@pytest.mark.parametrize("text", ["", "{", "[]", '{"path": 1}', '{"path": null, "text": null}', "\0"])
def test_what_is_remembered_may_be_damaged(text):
    places.studies_folder().mkdir(parents=True)
    (places.studies_folder() / "mine.json").write_text(text)
    with pytest.raises(UserError, match=r"no study or study file|the study mine"):
        read_study(find_study("mine"))
