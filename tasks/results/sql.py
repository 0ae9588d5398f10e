"""A user's SQL over the warehouse: run in a sandbox, printed in four formats."""

import csv
import html
import json
import math
import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from threading import Event, Thread
from typing import Any

import duckdb
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tasks.errors import UserError
from tasks.markdown import visible
from tasks.results.warehouse_reading import attach_warehouse

FORMATS = ("table", "csv", "json", "markdown")
MEMORY_GIB = 4  # that a query may use
RESULT_MIB = 256  # that its result may take, which Python spells out in several times that
QUERY_LENGTH = 100_000  # characters
LONGEST_SECONDS = 86_400  # that a timeout may be
STUBBORN_SECONDS = 10.0  # that a query may go on after its time
THREADS = 4
MISSING = "–"
SHOWN_ROWS = 1000  # of a table for a terminal
SHOWN_CHARACTERS = 10_000  # of a cell that is for reading
UNBOUNDED = 1_000_000  # columns of a terminal that isn't one

_ADDRESS_SPACE = resource.getrlimit(resource.RLIMIT_AS)
_MEMORY_IN_USE = Path("/proc/self/statm")
_LISTING = """
    SELECT view_name AS name, 'view' AS kind, comment, view_oid AS oid FROM duckdb_views() WHERE NOT internal
    UNION ALL
    SELECT table_name, 'table', comment, table_oid FROM duckdb_tables() WHERE NOT internal
    ORDER BY kind DESC, oid
"""


def run_sql(path: Path, query: str, limit: int | None = None, timeout_seconds: float = 30) -> pa.Table:
    """The result of one SELECT over the warehouse, cut off after `limit` rows.

    Raises: UserError when there is no warehouse, or the query is refused, wrong, too slow or too large.
    """
    if not 0 < timeout_seconds <= LONGEST_SECONDS:
        raise UserError(
            f"the timeout must be over 0 and at most {LONGEST_SECONDS:,} s, got {timeout_seconds}. Choose another."
        )
    with _sandbox(path) as connection, _time_limit(connection, timeout_seconds) as expired, _memory_limit():
        try:
            return _fetch(connection, _select(connection, query), limit)
        except (duckdb.Error, pa.ArrowException, OSError, MemoryError, ValueError) as error:
            if expired.is_set():
                raise UserError(
                    f"a query must end within {timeout_seconds:g} s, this one did not. Ask for less at once."
                ) from error
            if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
                raise UserError(
                    f"a query must do with {MEMORY_GIB} GiB of memory, this one did not. Ask for less at once."
                ) from error
            reason = " ".join(str(error).partition("\n\nLINE ")[0].split())[:500]
            raise UserError(
                f"a query must be SQL that the warehouse can answer (`headstream sql` lists its tables), got: {reason}"
            ) from error


def list_tables(path: Path) -> pa.Table:
    """The warehouse's views and tables: name, kind, rows, comment."""
    with _sandbox(path) as connection:
        found = connection.execute(_LISTING).fetchall()
        counts = [connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name, *_ in found]
    names, kinds, comments, _ = zip(*found, strict=True)
    return pa.table({"name": names, "kind": kinds, "rows": counts, "comment": comments})


def format_table(table: pa.Table, output: str = "table", width: int | None = None) -> str:
    """A result as text without a last line end: a table for a terminal of that width, csv, json records or markdown.

    Table and markdown are for reading: 4 significant digits, long text cut off to fit the width, no character that
    would steer a terminal. A table shows its first rows; one with too many columns for the width is turned on its
    side. csv and json are exact.

    Raises: UserError for another format, or a date that Python has no word for.
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
            case _:
                raise UserError(f"the format must be one of {', '.join(FORMATS)}, got {output!r}. Choose one of those.")
    except (OverflowError, ValueError) as error:
        raise UserError(
            f"dates and times must lie in the years 1 to 9999 to be printed, got one beyond ({error})."
            " Cast it: my_date::VARCHAR."
        ) from error


@contextmanager
def _sandbox(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that can read the warehouse and do nothing else: no file, no network, no setting."""
    with duckdb.connect() as connection:
        attach_warehouse(connection, path)
        connection.execute(
            f"""
            SET memory_limit = '{MEMORY_GIB}GiB';
            SET threads = {THREADS};
            SET temp_directory = '';
            SET allow_persistent_secrets = false;
            SET python_enable_replacements = false;
            SET allowed_directories = [];
            SET autoinstall_known_extensions = false;
            SET autoload_known_extensions = false;
            SET enable_external_access = false;
            SET lock_configuration = true;
            """
        )
        yield connection


def _select(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.Statement:
    if len(query) > QUERY_LENGTH:
        raise UserError(f"a query must have at most {QUERY_LENGTH:,} characters, got {len(query):,}. Shorten it.")
    query.encode()  # an argument may hold bytes that are no text
    statements = connection.extract_statements(query)
    if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
        came = ", ".join(statement.type.name for statement in statements) or "nothing"
        raise UserError(f"a query must be one SELECT, got {came}. The warehouse can only be read.")
    return statements[0]


def _fetch(connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement, limit: int | None) -> pa.Table:
    reader = connection.sql(statement).to_arrow_reader()
    batches, n_rows, n_bytes = [], 0, 0
    for batch in reader:
        batches.append(batch)
        n_rows += batch.num_rows
        n_bytes += batch.nbytes
        if n_bytes > RESULT_MIB * 2**20:
            raise UserError(f"a result must take at most {RESULT_MIB} MiB, this one takes more. Add a LIMIT.")
        if limit is not None and n_rows >= limit:
            break
    return pa.Table.from_batches(batches, reader.schema).slice(0, limit)


@contextmanager
def _time_limit(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[Event]:
    """Interrupts the connection once the time is over, and ends the process if that doesn't help.

    Yields the event that says so.
    """
    ended, expired = Event(), Event()

    def watch() -> None:
        if ended.wait(seconds):
            return
        expired.set()
        for _ in range(round(STUBBORN_SECONDS / 0.1)):  # an interrupt between two steps of a query is lost
            connection.interrupt()
            if ended.wait(0.1):
                return
        # A function of one value, like `lpad`, is a single step: it heeds no interrupt, and no Ctrl-C either.
        print(f"headstream: a query must end within {seconds:g} s, this one can't be stopped.", file=sys.stderr)
        os._exit(2)

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield expired
    finally:
        ended.set()
        watcher.join()


@contextmanager
def _memory_limit() -> Iterator[None]:
    """Caps the memory of this process, since functions like `range` allocate past DuckDB's own limit."""
    if not _MEMORY_IN_USE.exists():  # not Linux
        yield
        return
    soft, hard = _ADDRESS_SPACE
    cap = int(_MEMORY_IN_USE.read_text().split()[0]) * resource.getpagesize() + 2 * MEMORY_GIB * 2**30
    if soft == resource.RLIM_INFINITY or cap < soft:
        resource.setrlimit(resource.RLIMIT_AS, (cap, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, _ADDRESS_SPACE)


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
        return MISSING
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _significant(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_readable, value))}]"
    text = str(value)
    return visible(text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…")


def _significant(value: float) -> str:
    """A number with 4 significant digits, or all digits of its integer part."""
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:#.4g}"


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
    rule = [("---:" if _is_number(field.type) else "---") for field in table.schema]
    names = [_markdown_text(_readable(name)) for name in table.column_names]
    rows = [[_markdown_text(_readable(value)) for value in row] for row in _rows(table)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [names, rule, *rows])


def _markdown_text(text: str) -> str:
    """Text that markdown shows as it is; underscores within a word need nothing."""
    special = r"[\\`*|~\[\]]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"
    return html.escape(re.sub(special, r"\\\g<0>", text), quote=False)
