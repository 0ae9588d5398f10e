"""One-line messages about mistakes in a study, whatever the study holds."""

import difflib
import re
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from headstream.tasks.study.aliases import ALIASES
from headstream.tasks.study.names import IN_WORDS
from headstream.tasks.words.plain_text import terminal_safe

LENGTH = 600

_TYPES = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text in quotation marks",
    "string_unicode": "text in Unicode",
    "tuple_type": "a list in [ ]",
    "list_type": "a list in [ ]",
    "dict_type": "a table",
    "model_type": "a table",
}

# Pydantic's names of types, in the path to a value that may have several.
_OF_A_TYPE = re.compile(r"function-|constrained-|tuple\[|literal\[")


def described(invalid: ValidationError, config: type[BaseModel]) -> str:
    """Describe the first mistake in a study in one line, with the number of others."""
    first, errors = first_mistake(invalid), invalid.errors()
    place = _path(first)
    others = {path for path in map(_path, errors) if path != place[: len(path)]}
    text = terminal_safe(_described(first, config))
    more = f" (and {len(others)} more)" if others else ""
    return (text if len(text) <= LENGTH else f"{text[:LENGTH]}…") + more


def first_mistake(invalid: ValidationError) -> Any:
    """The first of pydantic's errors; of a list that could have been a single value, the one about the list."""
    errors = invalid.errors()
    place = _path(errors[0])
    same = [error for error in errors if _path(error)[: len(place)] == place]
    return max(same, key=lambda error: (len(_path(error)), error["type"] not in _TYPES))


def message(error: Any) -> str:
    """One of pydantic's errors in words: what must hold, and what was given."""
    if error["type"] == "value_error":
        return re.sub(r"^Value error, ", "", error["msg"])
    if error["type"] == "string_pattern_mismatch":
        return f"must be {IN_WORDS[error['ctx']['pattern']]}, got {short(error['input'])}."
    if error["type"] in _TYPES:
        return f"must be {_TYPES[error['type']]}, got {short(error['input'])}.{_remedy(error)}"
    wanted = re.sub(r"^(Input|String|List|Tuple|Value) should", "must", error["msg"])
    wanted = re.sub(r" after validation, not \d+$", "", wanted)
    return f"{wanted}, got {short(error['input'])}."


def _remedy(error: Any) -> str:
    """What to do about a value of another type, where that is certain."""
    given = error["input"]
    if error["type"] in ("int_type", "float_type", "bool_type") and isinstance(given, str):
        return " Leave out the quotation marks."
    if error["type"] == "int_type" and isinstance(given, float) and given.is_integer():
        return f" Write {short(int(given))}."
    return ""


def word(value: Any) -> str:
    """A value as it is if it is a plain word, otherwise quoted and shortened."""
    return value if isinstance(value, str) and re.fullmatch(r"[\w.-]{1,40}", value) else short(value)


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name that was probably meant (aliases count), or else at all known names."""
    known = list(known)
    alias = ALIASES.get(_plain(name))
    near = [alias] if alias in known else difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(known)}."


def _described(error: Any, config: Any) -> str:
    *sections, field = _path(error) or ("",)
    if field == "[key]":
        *sections, _ = sections
        field = "a name"
    item = ""
    if field.isdecimal() and sections:
        item = f", item {int(field) + 1}"
        *sections, field = sections
    if own := ALSO_WRITTEN.get(".".join([*sections, field])):
        sections, field = [], own
    fields, place = _section_named(config, sections)
    if error["type"] == "extra_forbidden":
        hint = nearest(field, [known.alias or name for name, known in fields.model_fields.items()])
        names = {field, ALIASES.get(_plain(field))}
        elsewhere = next(((section, name) for section, name in _fields(config) if name in names), None)
        if elsewhere and not names & {*fields.model_fields}:
            hint = f" Did you mean {elsewhere[1]!r} of [{elsewhere[0]}]?"
        return f"{place}{'has ' if place else ''}no field {field!r}.{hint}"
    if error["type"] == "missing":
        return f"{place}{field} is missing. Add it."
    name = f"{place}{field}{item}: " if field else ""
    return f"{name}{message(error)}"


def _path(error: Any) -> tuple[str, ...]:
    """The path to a mistake, without the names of the types that its value might have had."""
    return tuple(part for part in map(str, error["loc"]) if not _OF_A_TYPE.match(part))


# Sections as a study file writes them, where they have other names.
ALSO_WRITTEN = {"until_decided": "grid.seed", "analysis.prompts.sets": "prompts"}


def section_of(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The config of a field that is a section (None for others), and True if there may be several such sections."""
    annotation = _without_wrapping(annotation)
    several = get_origin(annotation) is tuple
    config = _without_wrapping(get_args(annotation)[0]) if several else annotation
    return (config if isinstance(config, type) and issubclass(config, BaseModel) else None), several


def _without_wrapping(annotation: Any) -> Any:
    """The type of what may be left out, or has more to it than a type."""
    if get_origin(annotation) in (UnionType, Union) and NoneType in get_args(annotation):
        annotation = get_args(annotation)[0]
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _section_named(config: Any, sections: Sequence[str]) -> tuple[Any, str]:
    """The config of a section by its path, and the section as a study file writes it: `[corpus] `, `[[models]] 2: `."""
    names: list[str] = []
    place = ""
    for section in sections:
        if section.isdecimal():  # of several sections of one name
            place = f"[[{'.'.join(names)}]] {int(section) + 1}: "
            continue
        if section in getattr(config, "model_fields", {}):
            config = section_of(config.model_fields[section].annotation)[0] or config
        names = ALSO_WRITTEN.get(".".join([*names, section]), f"{'.'.join([*names, section])}").split(".")
        place = f"[{'.'.join(names)}] "
    return config, place


def _fields(config: type[BaseModel], section: str = "") -> Iterator[tuple[str, str]]:
    """Every field of a study file, at any depth, as section and name."""
    for name, field in config.model_fields.items():
        inner, _ = section_of(field.annotation)
        if inner:
            yield from _fields(inner, f"{section}.{name}".lstrip("."))
        elif section:
            yield section, name


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


class _Short(reprlib.Repr):
    """Any value as a study file writes it, shortened to a few words."""

    def repr_bool(self, value: bool, level: int) -> str:
        return str(value).lower()

    def repr_tuple(self, values: tuple, level: int) -> str:
        return self.repr_list(list(values), level)

    def repr_date(self, value: date | time, level: int) -> str:
        return value.isoformat()

    repr_datetime = repr_time = repr_date

    def repr_int(self, number: int, level: int) -> str:
        # Python refuses to spell a number of thousands of digits, which TOML can hold in hexadecimal.
        return repr(number) if number.bit_length() < 256 else f"an integer of {number.bit_length():,} bits"


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = 100


def short(value: Any) -> str:
    """A value as a study file writes it, shortened to a few words."""
    return _SHORT.repr(value)
