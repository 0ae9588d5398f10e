"""A user's SQL over the warehouse, run in a sandbox."""

import difflib
import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import duckdb
import pyarrow as pa

from headstream.tasks.errors import UserError
from headstream.tasks.results.warehouse_reading import attach_warehouse

MEMORY_GIB = 4  # that a query may use
RESULT_MIB = 256  # that its result may take; as text in Python it takes several times that
QUERY_LENGTH = 100_000  # characters
MAX_TIMEOUT_SECONDS = 86_400  # that a timeout may be
STUBBORN_SECONDS = 10.0  # that a query may go on after its time

NESTED = {"list", "array", "struct", "map", "union", "tuple"}  # types of DuckDB that hold values of others

_ADDRESS_SPACE = resource.getrlimit(resource.RLIMIT_AS)
_MEMORY_IN_USE = Path("/proc/self/statm")
_LISTING = """
    SELECT view_name AS name, 'view' AS kind, comment, view_oid AS oid FROM duckdb_views() WHERE NOT internal
    UNION ALL
    SELECT table_name, 'table', comment, table_oid FROM duckdb_tables() WHERE NOT internal
    ORDER BY kind DESC, oid
"""

_COLUMNS = """
    SELECT column_name AS "column", lower(data_type) AS type, comment
    FROM duckdb_columns()
    WHERE NOT internal AND lower(table_name) = $name
    ORDER BY column_index
"""


def run_sql(path: Path, query: str, timeout_seconds: float = 30, *, lossless: bool = False) -> pa.Table:
    """The result of one SELECT over the warehouse.

    With `lossless`, DuckDB reads every value back as it was: those of types that Arrow lacks are in extension types,
    unions and tuples are JSON. Without, they are the nearest that Arrow has.

    Raises: UserError when there is no warehouse, or the query is refused, wrong, too slow or too large.
    """
    if not 0 < timeout_seconds <= MAX_TIMEOUT_SECONDS:
        raise UserError(
            f"the timeout must be over 0 and at most {MAX_TIMEOUT_SECONDS:,} s, got {timeout_seconds}. Choose another."
        )
    with _sandbox(path, lossless) as connection, _time_limit(connection, timeout_seconds) as expired, _memory_limit():
        try:
            found = connection.sql(_select(connection, query))
            return _fetch(found.project(", ".join(_lossless(found))) if lossless else found)
        except (duckdb.Error, pa.ArrowException, OSError, MemoryError, ValueError) as error:
            if expired.is_set():
                raise UserError(
                    f"the query took more than {timeout_seconds:g} s. Ask for less at once, or set a longer timeout."
                ) from error
            if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
                raise UserError(
                    f"the query needed more than {MEMORY_GIB} GiB of memory. Ask for less at once."
                ) from error
            reason = " ".join(str(error).partition("\n\nLINE ")[0].split())[:500]
            raise UserError(
                f"the warehouse can't answer this query (`headstream sql` lists its tables): {reason}"
            ) from error


def list_columns(path: Path, table: str) -> pa.Table:
    """The columns of a table or view: name, type, comment.

    Raises: UserError when there is no such table, or no warehouse.
    """
    with _sandbox(path) as connection:
        found = connection.sql(_COLUMNS, params={"name": table.lower()}).to_arrow_table()
        names = [name for name, *_ in connection.execute(_LISTING).fetchall()]
    if not found.num_rows:
        near = difflib.get_close_matches(table.lower(), names, n=1)
        hint = f"Did you mean {near[0]}?" if near else "`headstream sql` lists them."
        raise UserError(f"{table[:100]!r} is neither SQL nor the name of a table or view. {hint}")
    return found


def list_tables(path: Path) -> pa.Table:
    """The warehouse's views and tables: name, kind, rows, comment."""
    with _sandbox(path) as connection:
        found = connection.execute(_LISTING).fetchall()
        counts = [connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name, *_ in found]
    names, kinds, comments, _ = zip(*found, strict=True)
    return pa.table({"name": names, "kind": kinds, "rows": counts, "comment": comments})


@contextmanager
def _sandbox(path: Path, lossless: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that can read the warehouse and do nothing else: no file, no network, no setting."""
    with duckdb.connect() as connection:
        attach_warehouse(connection, path)
        connection.execute(
            f"""
            SET memory_limit = '{MEMORY_GIB}GiB';
            SET threads = 4;
            SET arrow_lossless_conversion = {lossless};
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
    # A PIVOT over the values of a column is MULTI: it first finds out what these are.
    if len(statements) != 1 or statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI):
        came = ", ".join(statement.type.name for statement in statements) or "nothing"
        raise UserError(f"a query must be one SELECT, got {came}. The warehouse can only be read.")
    return statements[0]


def _lossless(found: duckdb.DuckDBPyRelation) -> Iterator[str]:
    """The columns in SQL. Arrow forgets which member of a union is NULL, and that members of a tuple have no names."""
    for place, (name, kind) in enumerate(zip(found.columns, found.types, strict=True), start=1):
        unlike_arrow = kind.id in NESTED and re.search(r"\b(UNION|TUPLE)\b", str(kind))
        quoted = name.replace('"', '""')
        yield f'{f"to_json(#{place})" if unlike_arrow else f"#{place}"} AS "{quoted}"'


def _fetch(found: duckdb.DuckDBPyRelation) -> pa.Table:
    reader = found.to_arrow_reader()
    batches, n_bytes = [], 0
    for batch in reader:
        batches.append(batch)
        n_bytes += batch.nbytes
        if n_bytes > RESULT_MIB * 2**20:
            raise UserError(f"the result takes more than {RESULT_MIB} MiB. Add a LIMIT.")
    return pa.Table.from_batches(batches, reader.schema)


@contextmanager
def _time_limit(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[Event]:
    """Interrupt the connection once the time is over, and end the process if that doesn't help.

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
        print(f"headstream: the query took more than {seconds:g} s, and can't be interrupted.", file=sys.stderr)
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
    """Cap the memory of this process, since functions like `range` allocate past DuckDB's own limit."""
    if not _MEMORY_IN_USE.exists():  # not Linux
        yield
        return
    soft, hard = _ADDRESS_SPACE
    cap = int(_MEMORY_IN_USE.read_text(encoding="utf-8").split()[0]) * resource.getpagesize() + 2 * MEMORY_GIB * 2**30
    if soft == resource.RLIM_INFINITY or cap < soft:
        resource.setrlimit(resource.RLIMIT_AS, (cap, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, _ADDRESS_SPACE)
