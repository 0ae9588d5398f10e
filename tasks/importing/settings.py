"""The settings of a model from elsewhere, each read with its type; settings that were never read are reported."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headstream.models.architecture import Architecture
from headstream.tasks.errors import UserError
from headstream.tasks.study.mistakes import described, word

MAX_SETTING = 1 << 24  # of anything that is counted: tokens, positions, dimensions
_REQUIRED: Any = object()


class Settings:
    """Settings of a config by name; None counts as not given."""

    def __init__(self, values: Mapping[str, Any], path: Path) -> None:
        self.path = path
        self._named = set(values)
        self._values = {name: value for name, value in values.items() if value is not None}
        self._read: set[str] = set()
        self._sections: dict[str, Settings] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    @property
    def is_empty(self) -> bool:
        """True if there are no settings at all, not even as None."""
        return not self._named

    def says(self, name: str) -> bool:
        """True if a setting is there at all, even as None."""
        return name in self._named

    def has(self, name: str, value: Any) -> bool:
        """True if a setting has this value."""
        return bool(self._values.get(name) == value)

    def whole(self, name: str, default: Any = _REQUIRED) -> int:
        """A whole number from 0 to a generous maximum."""
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SETTING:
            raise self._wrong(name, f"a whole number up to {MAX_SETTING:,}", value)
        return value

    def number(self, name: str, default: Any = _REQUIRED, above: float = 0) -> float:
        """A finite number above another one."""
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not above < value < float("inf"):
            raise self._wrong(name, f"a number above {above:g}", value)
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self._value(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def choice(self, name: str, choices: Mapping[str, str], default: Any = _REQUIRED) -> str:
        """The meaning of one of several words."""
        value = self._value(name, default)
        if not isinstance(value, str) or value not in choices:
            raise self._wrong(name, f"one of {', '.join(choices)}", value)
        return choices[value]

    def section(self, name: str) -> "Settings":
        """Settings within a setting; empty if it isn't given."""
        value = self._value(name, {})
        if not isinstance(value, dict):
            raise self._wrong(name, "an object", value)
        return self._sections.setdefault(name, Settings(value, self.path))

    def all(self) -> dict[str, Any]:
        """All settings that are given, as they are."""
        self._read |= self._named
        return dict(self._values)

    def words(self, name: str) -> list[str]:
        """A list of words; empty if it isn't given."""
        value = self._value(name, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong(name, "a list of words", value)
        return value

    def must_be(self, name: str, neutral: tuple[Any, ...], part: str) -> None:
        """Refuse a setting that asks for a part of a model that Headstream lacks.

        Raises:
            UserError: it is given, and not one of the neutral values.
        """
        value = self._value(name, neutral[0])
        if not any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in neutral):
            asked = " or ".join(dict.fromkeys("none" if each is None else word(each) for each in neutral))
            raise UserError(
                f"{name} must be {asked}, got {word(value)} in {self.path}: Headstream has no {part}."
                " Choose another model."
            )

    def ignore(self, *names: str) -> None:
        """Mark settings as read that don't affect what a trained model computes."""
        self._read |= set(names)

    def may_repeat(self, name: str, value: Any) -> None:
        """Mark a setting as read if it says again what another one says."""
        if self._values.get(name) == value:
            self._read.add(name)

    @property
    def unread(self) -> list[str]:
        """Names of settings that were never read, and aren't empty; with those of sections as `section.name`."""
        own = [name for name, value in self._values.items() if name not in self._read and value]
        within = [f"{name}.{each}" for name, section in self._sections.items() for each in section.unread]
        return sorted(own + within)

    @property
    def notes(self) -> list[str]:
        """Notes for the user on settings that were never read, and aren't empty."""
        return [f"settings that are not read: {', '.join(self.unread)}"] if self.unread else []

    def _value(self, name: str, default: Any) -> Any:
        self._read.add(name)
        if name not in self._values and default is _REQUIRED:
            raise UserError(f"{self.path} has no {name}. Give the config that belongs to the weights.")
        return self._values.get(name, default)

    def _wrong(self, name: str, wanted: str, value: Any) -> UserError:
        return UserError(
            f"{name} must be {wanted}, got {word(value)} in {self.path}. Correct it, or choose another model."
        )


def checked_architecture(path: Path, **fields: Any) -> Architecture:
    """An architecture with these fields.

    Raises:
        UserError: some are out of Headstream's range.
    """
    try:
        return Architecture(**fields)
    except ValidationError as error:
        raise UserError(
            f"{path} describes a model that Headstream can't represent: {described(error, Architecture)}"
        ) from None
