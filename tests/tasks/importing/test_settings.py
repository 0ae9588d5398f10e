"""Settings of a file: what is refused, and what is told."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from written_families import write_family

from headstream.tasks.errors import UserError
from headstream.tasks.importing.careful_reading import read_json
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.importing.settings import Settings


@pytest.mark.parametrize(
    ("neutral", "words"), [((None, "none"), "gate must be none, got on"), ((None, 0), "gate must be none or 0, got on")]
)
def test_neutral_values_are_named_once(neutral, words):
    with pytest.raises(UserError) as refused:
        Settings({"gate": "on"}, Path("c")).must_be("gate", neutral, "gates")
    assert words in str(refused.value)


def test_what_is_never_read_is_told_within_sections_too():
    said: dict[str, Any] = {"a": 1, "b": None, "c": False, "d": {"e": 2, "f": 3}, "g": {"h": 4}, "i": 5.0, "j": 6.0}
    settings = Settings(said, Path("c"))
    settings.section("d").whole("e")
    settings.may_repeat("i", 5)
    settings.may_repeat("j", 5)
    assert settings.notes == ["settings that are not read: a, d.f, g, j"]
    assert settings.section("d").whole("f") == 3
    assert settings.unread == ["a", "g", "j"]
    assert settings.section("none").is_empty
    assert not settings.section("d").is_empty


@pytest.mark.parametrize(
    "content",
    ['{"n_head": 3, "a": 1, "n_head": 5}', '{"a": [{"n_head": 3, "n_head": 3}]}', '{"a": {"n_head": 1, "n_head": {}}}'],
)
def test_a_name_that_stands_twice_is_refused_wherever_it_is(content, tmp_path):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(UserError, match=r"config\.json must say each thing once: 'n_head' stands") as refused:
        read_json(tmp_path / "config.json")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_no_file_of_a_model_says_a_thing_twice(name, tmp_path):
    write_family(tmp_path, "llama")
    tokenizer = Tokenizer(WordLevel({"a": 0}, unk_token="a"))
    written = {"tokenizer.json": tokenizer.to_str(), "tokenizer_config.json": '{"add_bos_token": false}'}
    written["config.json"] = (tmp_path / "config.json").read_text()
    for each, content in written.items():
        (tmp_path / each).write_text(content)
    open_foreign(tmp_path)
    first = next(iter(json.loads(written[name])))
    (tmp_path / name).write_text(written[name].replace("{", f'{{"{first}": null, ', 1))
    with pytest.raises(UserError, match=f"{name} must say each thing once: '{first}' stands twice"):
        open_foreign(tmp_path)
