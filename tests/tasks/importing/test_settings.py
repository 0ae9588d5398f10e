"""Settings of a file: what is refused, and what is told."""

from pathlib import Path
from typing import Any

import pytest

from headstream.tasks.errors import UserError
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
