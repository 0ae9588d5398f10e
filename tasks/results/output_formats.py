"""A query's result as text: a table for a terminal, csv, JSON records or a markdown table.

DuckDB spells every value: what it reads back as the same value, at any depth.
"""

import csv
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from io import StringIO
from typing import Any, Literal

import duckdb
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headstream.tasks.results.sql import NESTED
from headstream.tasks.words.markdown import escaped, markdown_table
from headstream.tasks.words.plain_text import terminal_safe

SHOWN_ROWS = 1000  # of a table for a terminal
SHOWN_CHARACTERS = 10_000  # of a cell that is for reading
UNBOUNDED = 1_000_000  # columns of a terminal that isn't one

_INTEGERS = {f"{sign}{size}" for sign in ("", "u") for size in ("tinyint", "smallint", "integer", "bigint", "hugeint")}
_NUMBERS = _INTEGERS | {"float", "double", "decimal"}
# A string, or else what stands for a number that isn't finite.
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|-?(?:NaN|Infinity)')


def format_table(table: pa.Table, output: Literal["table", "csv", "json", "markdown"], width: int | None = None) -> str:
    r"""A result as text without a last line end: a table for a terminal of that width, csv, json records or markdown.

    Table and markdown are for reading: 4 significant digits, long text cut off to fit the width, no character that
    would steer a terminal. A table shows its first rows; one with too many columns for the width is turned on its
    side.

    csv and json are exact. JSON has numbers of any length, but no NaN and no infinity: these are null, at every depth.
    What else it has no type for is text as DuckDB writes it: dates, times, intervals, UUIDs, enums, bits, blobs
    (`\xAA`). A map is an object whose names are its keys as text, a union an object of the member that it has. A
    column whose name another one has gets a number behind it. In csv, lists and other nested values are JSON; NULL and
    empty text are both nothing.
    """
    match output:
        case "table":
            return _terminal(table, width)
        case "csv":
            return _csv(table)
        case "json":
            return _json(table)
        case "markdown":
            return _markdown(table)


def _terminal(table: pa.Table, width: int | None) -> str:
    console = Console(width=width or (None if sys.stdout.isatty() else UNBOUNDED))
    unbounded = console.options.update(max_width=UNBOUNDED)

    def fits(grid: Table) -> bool:
        return console.measure(grid, options=unbounded).minimum <= console.width

    shown = table.slice(0, SHOWN_ROWS)
    names, (kinds, values) = table.column_names, _spelled(shown, _for_reading)
    rows = [[_cell(value) for value in row] for row in values]
    grids = [_grid(names, kinds, rows)]
    if not fits(grids[0]):
        few = len(rows) < console.width // 4  # no more would fit side by side
        blocks = [rows] if few and fits(_turned(names, rows)) else [[row] for row in rows]
        grids = [_turned(names, block) for block in blocks]
    with console.capture() as captured:
        for grid in grids:
            console.print(grid)
            console.print()
    lines = [line.rstrip() for line in captured.get().rstrip().splitlines()]
    more = table.num_rows - shown.num_rows
    if more:
        lines += ["", f"{more:,} more rows are not shown: --format csv prints them all."]
    return "\n".join(lines)


def _grid(names: Sequence[str], kinds: Sequence[str], rows: list[list[Text]]) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, kind in zip(names, kinds, strict=True):
        is_number = kind in _NUMBERS
        grid.add_column(_cell(name), justify="right" if is_number else "left", no_wrap=is_number)
    for row in rows:
        grid.add_row(*row)
    return grid


def _turned(names: list[str], rows: list[list[Text]]) -> Table:
    """A table with a line for each column and the rows side by side."""
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    for name, *values in zip(names, *rows, strict=True):
        grid.add_row(_cell(name), *values)
    return grid


def _cell(value: Any) -> Text:
    return Text(_readable(value), style="dim" if value is None else "", no_wrap=True, overflow="ellipsis")


def _readable(value: Any) -> str:
    """A value on one line."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        value = float(value) if value.as_tuple().exponent else int(value)
    if isinstance(value, float):
        # 4 significant digits, or all digits of the integer part
        return f"{value:.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:#.4g}"
    if isinstance(value, list):
        return f"[{', '.join(map(_readable, value))}]"
    text = str(value)
    return terminal_safe(text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…")


def _spelled(table: pa.Table, spell: Callable[[str, DuckDBPyType], str]) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """The columns' types, and the rows of what `spell` makes in SQL of each column, given its name and type."""
    connection = duckdb.connect()
    connection.register("result", table.rename_columns([f"column_{i}" for i in range(table.num_columns)]))
    result = connection.table("result")
    found = connection.execute(f"SELECT {', '.join(map(spell, result.columns, result.types))} FROM result")
    # Not all of them as Python objects at once.
    rows = itertools.chain.from_iterable(iter(lambda: found.fetchmany(10_000), []))
    return ["json" if str(kind) == "JSON" else kind.id for kind in result.types], rows


def _for_reading(column: str, kind: DuckDBPyType) -> str:
    inner: Any = kind
    while inner.id == "list":
        inner = inner.children[0][1]
    return column if inner.id in {*_NUMBERS, "boolean", "varchar"} else f"{column}::VARCHAR"


def _as_json(column: str, kind: DuckDBPyType) -> str:
    # What is JSON already would have its numbers rounded to doubles.
    return f"{column}::VARCHAR" if str(kind) == "JSON" else f"to_json({column})::VARCHAR"


def _for_csv(column: str, kind: DuckDBPyType) -> str:
    return _as_json(column, kind) if kind.id in NESTED else f"{column}::VARCHAR"


def _csv(table: pa.Table) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    kinds, rows = _spelled(table, _for_csv)
    are_json = [kind in NESTED or kind == "json" for kind in kinds]
    for row in rows:
        writer.writerow([_finite(v) if v and is_json else v for v, is_json in zip(row, are_json, strict=True)])
    return text.getvalue().removesuffix("\n")


def _json(table: pa.Table) -> str:
    names = [json.dumps(name, ensure_ascii=False) for name in _distinct(table.column_names)]
    _, rows = _spelled(table, _as_json)
    records = []
    for row in rows:
        fields = [f"{name}: {_finite(value or 'null')}" for name, value in zip(names, row, strict=True)]
        records.append(f"{{{', '.join(fields)}}}")
    text = "[\n" + ",\n".join(records) + "\n]" if records else "[]"
    return re.sub(r"[\x7f-\x9f]", lambda control: f"\\u{ord(control[0]):04x}", text)  # some terminals obey these


def _finite(text: str) -> str:
    """JSON with null for numbers that aren't finite."""
    return _JSON_TOKEN.sub(lambda token: token[0] if token[0][0] == '"' else "null", text)


def _distinct(names: Sequence[str]) -> list[str]:
    """Names with `_1`, `_2`, ... behind those that were there before; a name that only one column has stays."""
    found: list[str] = []
    for name in names:
        numbered = (f"{name}_{number}" for number in itertools.count(1))
        found.append(next(other for other in numbered if other not in {*names, *found}) if name in found else name)
    return found


def _markdown(table: pa.Table) -> str:
    kinds, rows = _spelled(table, _for_reading)
    headings, *cells = ([escaped(_readable(value)) for value in row] for row in (table.column_names, *rows))
    return markdown_table(headings, [kind in _NUMBERS for kind in kinds], cells)
