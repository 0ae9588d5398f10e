"""Configurations in words: places of a study's grid without their seed, and what a verdict that differs depends on."""

import re
from collections.abc import Mapping, Sequence

from headstream.tasks.words.lists import listed

_Settings = Mapping[str, str]

_SETTING = re.compile(r"(\w+)=(\[[^\]]*\]|\S*)")
_MAX_PLACES = 4  # configurations of one verdict; more are counted
_NOUNS = {"n_layers": "layer", "n_heads": "head", "total_heads": "head"}
_PLACES = {"n_heads": " a layer", "total_heads": " in all"}


def named(places: Sequence[str]) -> dict[str, str]:
    """A name for each place like `n_layers=2 n_heads=4`: what tells it from the others, in words.

    Variants are named by their names alone, and axes that don't vary are left out, unless there is one place only.
    """
    settings = {place: dict(_SETTING.findall(place)) for place in places}
    short = {place: _name(_telling(own, list(settings.values()))) for place, own in settings.items()}
    if len({*short.values()}) == len(settings) > 1:
        return short
    if len(settings) == 1:
        return {place: _name(_of_layers(own)) for place, own in settings.items()}
    return {place: _name(own) for place, own in settings.items()}


def depends_on(verdicts: Mapping[str, str]) -> str:
    """Verdicts by what they depend on: `holds at 2, 4 and 8 heads a layer, fails at 1`, else place by place."""
    settings = {place: dict(_SETTING.findall(place)) for place in verdicts}
    kinds = sorted({*verdicts.values()}, key=_order)
    for axis in _shared_axes(list(settings.values())):
        if axis == "variant":
            continue
        values: dict[str, set[str]] = {kind: set() for kind in kinds}
        for place, verdict in verdicts.items():
            values[verdict].add(settings[place][axis])
        if sum(map(len, values.values())) == len(set().union(*values.values())):
            first, *others = ((kind, sorted(values[kind], key=_size)) for kind in kinds)
            parts = [f"{_before_places(first[0])} at {_counted(axis, first[1])}"]
            return ", ".join(parts + [f"{_before_places(kind)} at {listed(of_kind)}" for kind, of_kind in others])
    names = named(list(verdicts))
    parts = []
    for kind in kinds:
        of_kind = [names[place] for place, verdict in verdicts.items() if verdict == kind]
        many = len(of_kind) > _MAX_PLACES
        where = f"in {len(of_kind)} configurations" if many else f"for {listed(sorted(of_kind))}"
        parts.append(f"{_before_places(kind)} {where}")
    return ", ".join(parts)


def _before_places(verdict: str) -> str:
    """A verdict as it stands before places: a comma in it needs one after it."""
    return f"{verdict}," if "," in verdict else verdict


def _order(verdict: str) -> tuple[bool, bool, str]:
    return not verdict.startswith("holds"), verdict == "undecided", verdict


def _of_layers(own: _Settings) -> _Settings:
    """Settings that say something of a model: without layers, numbers of heads don't."""
    return {axis: value for axis, value in own.items() if axis != "n_heads" or own.get("n_layers") != "0"}


def _telling(own: _Settings, all_settings: Sequence[_Settings]) -> dict[str, str]:
    """The settings that tell a place from the others; a variant's name stands for what it sets."""
    shared = _shared_axes(all_settings)
    told = {}
    for axis, value in own.items():
        varies = any(other.get(axis) != value for other in all_settings)
        if varies and ("variant" not in own or axis in shared):
            told[axis] = value
    return told


def _shared_axes(all_settings: Sequence[_Settings]) -> list[str]:
    """The axes that every place has, and that vary."""
    first, *others = all_settings
    shared = [axis for axis in first if all(axis in other for other in others)]
    return [axis for axis in shared if any(other[axis] != first[axis] for other in others)]


def _name(settings: _Settings) -> str:
    words = [value if axis == "variant" else _counted(axis, [value]) for axis, value in settings.items()]
    first, *others = words or ["all else alike"]
    return f"{first} with {listed(others)}" if others else first


def _counted(axis: str, values: Sequence[str]) -> str:
    """Values of an axis in words: `2 and 4 heads a layer`, `positions rotary`."""
    if axis in _NOUNS:
        plural = "" if list(values) == ["1"] else "s"
        return f"{listed(values)} {_NOUNS[axis]}{plural}{_PLACES.get(axis, '')}"
    return f"{axis} {listed(values)}"


def _size(value: str) -> tuple[float, str]:
    """Numbers by size, words after them by letter."""
    try:
        return float(value), value
    except ValueError:
        return float("inf"), value
