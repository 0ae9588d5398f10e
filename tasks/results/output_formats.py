"""A query's result as text: a table for a terminal, csv, JSON records or a markdown table."""

import csv
import json
import math
import re
import sys
from collections.abc import Iterator
from io import StringIO
from typing import Any, Literal

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tasks.errors import UserError
from tasks.markdown import escaped, markdown_table
from tasks.plain_text import terminal_safe

SHOWN_ROWS = 1000  # of a table for a terminal
SHOWN_CHARACTERS = 10_000  # of a cell that is for reading
UNBOUNDED = 1_000_000  # columns of a terminal that isn't one


def format_table(table: pa.Table, output: Literal["table", "csv", "json", "markdown"], width: int | None = None) -> str:
    """A result as text without a last line end: a table for a terminal of that width, csv, json records or markdown.

    Table and markdown are for reading: 4 significant digits, long text cut off to fit the width, no character that
    would steer a terminal. A table shows its first rows; one with too many columns for the width is turned on its
    side. csv and json are exact.

    Raises: UserError for a date that Python has no word for.
    """
    try:
        match output:
            case "table":
                return _terminal(table, width)
            case "csv":
                return _csv(table)
            case "json":
                return _json(table)
            case "markdown":
                return _markdown(table)
    except (OverflowError, ValueError) as error:
        raise UserError(
            f"dates and times must lie in the years 1 to 9999 to be printed, got one beyond ({error})."
            " Cast it: my_date::VARCHAR."
        ) from error


def _terminal(table: pa.Table, width: int | None) -> str:
    console = Console(width=width or (None if sys.stdout.isatty() else UNBOUNDED))
    unbounded = console.options.update(max_width=UNBOUNDED)

    def fits(grid: Table) -> bool:
        return console.measure(grid, options=unbounded).minimum <= console.width

    shown = table.slice(0, SHOWN_ROWS)
    names, rows = table.column_names, [[_cell(value) for value in row] for row in _rows(shown)]
    grids = [_grid(table.schema, rows)]
    if not fits(grids[0]):
        few = len(rows) < console.width // 4  # no more would fit side by side
        blocks = [rows] if few and fits(_turned(names, rows)) else [[row] for row in rows]
        grids = [_turned(names, block) for block in blocks]
    with console.capture() as captured:
        for grid in grids:
            console.print(grid)
            console.print()
    lines = [line.rstrip() for line in captured.get().rstrip().splitlines()]
    if more := table.num_rows - shown.num_rows:
        lines += ["", f"{more:,} more rows are not shown: --format csv prints them all."]
    return "\n".join(lines)


def _grid(schema: pa.Schema, rows: list[list[Text]]) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for field in schema:
        is_number = _is_number(field.type)
        grid.add_column(_cell(field.name), justify="right" if is_number else "left", no_wrap=is_number)
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
    if isinstance(value, float):
        # 4 significant digits, or all digits of the integer part
        return f"{value:.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:#.4g}"
    if isinstance(value, list):
        return f"[{', '.join(map(_readable, value))}]"
    text = str(value)
    return terminal_safe(text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…")


def _is_number(dtype: pa.DataType) -> bool:
    return pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype)


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    for batch in table.to_batches(max_chunksize=10_000):  # not all of them as Python objects at once
        yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    """A column's values; decimals, as which sums of integers come, as int or float."""
    if not pa.types.is_decimal(column.type):
        return column.to_pylist()
    number = float if column.type.scale else int
    return [None if value is None else number(value) for value in column.to_pylist()]


def _csv(table: pa.Table) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in _rows(table):
        writer.writerow([str(value).lower() if isinstance(value, bool) else value for value in row])
    return text.getvalue().removesuffix("\n")


def _json(table: pa.Table) -> str:
    names = [
        f"{name}_{before}" if (before := table.column_names[:i].count(name)) else name
        for i, name in enumerate(table.column_names)
    ]
    records = [dict(zip(names, map(_json_value, row), strict=True)) for row in _rows(table)]
    lines = [json.dumps(record, ensure_ascii=False, default=str) for record in records]
    text = "[\n" + ",\n".join(lines) + "\n]" if lines else "[]"
    return re.sub(r"[\x7f-\x9f]", lambda control: f"\\u{ord(control[0]):04x}", text)  # some terminals obey these


def _json_value(value: Any) -> Any:
    """The value as JSON has it: no NaN, no infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return [_json_value(item) for item in value] if isinstance(value, list) else value


def _markdown(table: pa.Table) -> str:
    headings, *rows = ([escaped(_readable(value)) for value in row] for row in (table.column_names, *_rows(table)))
    return markdown_table(headings, [_is_number(field.type) for field in table.schema], rows)
