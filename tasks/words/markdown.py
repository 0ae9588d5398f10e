"""Values and rows as markdown that shows them literally, whatever they contain."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from headstream.tasks.words.plain_text import terminal_safe

MISSING = "missing"
NO_BREAK = "\u00a0"  # space at which lines don't end
_NOT_QUANTITIES = {"seed", "shown_seed", "step", "that_offset"}
_ASIDES = ("_ci95", "_values", "_note")  # suffixes of columns that annotate another column
_SYNTAX = re.compile(
    r"[`*|~\[<$]|&(?=[#A-Za-z])"  # wherever it is
    r"|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"  # around a word
    r"|\\(?=[!-/:-@\[-`{-~]|$)"  # before what it would escape
    r"|^(?:>|=(?==*$)|[-+](?=[\s-]|$))|(?<!\S)#(?=#*(?:\s|$))"  # at the start of a line, or the end of a heading
)
_LIST_NUMBER = r"^(\d+)(?=[.)](?:\s|$))"
_ENTITIES = {"<": "&lt;", "&": "&amp;", "$": "&#36;"}  # for HTML and GitHub's formulas a backslash isn't enough


class Markdown(str):
    """Text that is markdown already; everything else that a template prints is escaped."""

    __slots__ = ()


def as_markdown(value: Any) -> Markdown:
    """The markdown that a template prints for a value."""
    return value if isinstance(value, Markdown) else escaped(readable(value))


def escaped(text: str) -> Markdown:
    """Text on one line, with escapes for everything that markdown, HTML or GitHub's formulas would take for syntax.

    This is safe in table cells and at the start of a line, too. Numbers and most words need no escape.
    """
    one_line = terminal_safe(" ".join(text.split()))
    inline = _SYNTAX.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), one_line)
    return Markdown(re.sub(_LIST_NUMBER, r"\1\\", inline))


def readable(value: Any, column: str = "") -> str:
    """A value with a sensible number of digits; the column's name ends with its unit."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(readable, value))
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M} UTC"
    if isinstance(value, int | float) and column.endswith(("tokens", "bytes")):
        return short_count(value)
    if isinstance(value, float):
        digits = 3 if abs(value) < 10 else 1
        return f"{value:z,.{0 if abs(value) >= 1000 else digits}f}"
    return f"{value:,}" if isinstance(value, int) and column not in _NOT_QUANTITIES else str(value)


def short_count(count: float) -> str:
    """A count in two or three digits: 5.0 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(count) >= 0.9995 * size:
            return f"{count / size:.{1 if abs(count) < 99.95 * size else 0}f} {unit}"
    return f"{count:.0f}"


def with_spread(
    value: Any, ci95: float | None, seeds: Iterable[float | None], show: Callable[[Any], str] = readable
) -> str:
    """A value over seeds: with its interval or, if it has none, with the range; for two seeds, their values in order.

    `2.63 ± 0.04`, `0.44 (0.39 to 0.47)` or `2.70, 2.61`.
    """
    known = [seed for seed in seeds if seed is not None]
    if value is None or not known or min(known) == max(known):
        return show(value)
    if len(known) == 2:
        return ", ".join(map(show, known))
    low, high = show(min(known)), show(max(known))
    if ci95 is None:
        return f"{show(value)} ({low} to {high})" if low != high else low
    digits = max(2, -math.floor(math.log10(ci95)))
    return f"{value:z.{digits}f} ± {ci95:z.{digits}f}"


def table_with_spreads(rows: Sequence[Mapping[str, Any]]) -> Markdown:
    """Rows as a table; beside a column `x`, `x_values` has values of seeds and `x_ci95` the error bar of their mean.

    `x_note` explains a missing value.
    """
    columns = [name for name in rows[0] if not name.endswith(_ASIDES)]
    numeric = [any(isinstance(row[name], int | float) for row in rows) for name in columns]
    return markdown_table(map(heading, columns), numeric, ([_cell(row, name) for name in columns] for row in rows))


def missing_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Columns without any value or note, of several rows; of one row, none: it says itself what it lacks."""
    shown = [name for name in rows[0] if not name.endswith(_ASIDES)] if len(rows) > 1 else []
    return [name for name in shown if all(row[name] is None and not row.get(f"{name}_note") for row in rows)]


def markdown_table(headings: Iterable[str], numeric: Iterable[bool], rows: Iterable[Iterable[str]]) -> Markdown:
    """Cells that are already markdown as a table, with columns of numbers aligned to the right."""
    rule = ["---:" if is_numeric else "---" for is_numeric in numeric]
    return Markdown("\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows)))


def code_block(text: str, language: str) -> Markdown:
    """Literal text, line by line, in a fence longer than any in it."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return Markdown("\n".join([fence + language, *map(terminal_safe, text.strip().split("\n")), fence]))


def heading(column: str) -> str:
    """A column's name in words, its unit after a comma."""
    return escaped(re.sub(r" (nats|seconds|tokens)$", r", \1", column.replace("_", " ")))


def _cell(row: Mapping[str, Any], name: str) -> str:
    value, note, seeds = row[name], row.get(f"{name}_note"), row.get(f"{name}_values") or ()
    if value is None and note:
        return escaped(note)
    if isinstance(value, Markdown):
        return value
    text = escaped(with_spread(value, row.get(f"{name}_ci95"), seeds, partial(readable, column=name)))
    return text.replace(" ", NO_BREAK) if isinstance(value, int | float) else text
