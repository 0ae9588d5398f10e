"""The tables that results are stored in, as data/schema.sql defines them, and the one way to write their rows."""

import difflib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from headstream.tasks.errors import WorkError
from headstream.tasks.places import ROOT

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = ROOT / "data" / "schema.sql"


@dataclass(frozen=True)
class Table:
    """A table's name, its primary key and all its columns, keys first; and those that name nodes of the row's model."""

    name: str
    key: tuple[str, ...]
    schema: pa.Schema
    labels: tuple[str, ...]  # columns that hold labels of nodes, or lists of them
    heads: tuple[tuple[str, str], ...]  # columns that together name a head: its layer, and its number there


@cache
def tables() -> dict[str, Table]:
    """Every table of data/schema.sql, by name, in the order of the file."""
    return tables_of(SCHEMA.read_text(encoding="utf-8"))


def tables_of(sql: str) -> dict[str, Table]:
    """The tables that a script like data/schema.sql creates."""
    with duckdb.connect() as connection:
        connection.execute(sql)
        keys = connection.execute(
            "SELECT table_name, constraint_column_names FROM duckdb_constraints() "
            "WHERE constraint_type = 'PRIMARY KEY' ORDER BY table_oid"
        ).fetchall()
        schemas = {name: connection.sql(f"FROM {name}").to_arrow_table().schema for name, _ in keys}
    labels: dict[str, list[str]] = defaultdict(list)
    heads: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for table, column, comment in _comments(sql):
        if column and comment.endswith("[node]"):
            labels[table].append(column)
        elif column and (mark := re.search(r"\[head of (\w+)\]$", comment)):
            heads[table].append((mark[1], column))
    return {name: Table(name, tuple(key), schemas[name], tuple(labels[name]), tuple(heads[name])) for name, key in keys}


def table_named(name: str) -> Table:
    """The table of that name."""
    if name not in tables():
        raise WorkError(f"a table must be one of data/schema.sql, got {name!r}. {_nearest(name, tables())}")
    return tables()[name]


def table_schema(name: str) -> pa.Schema:
    """Names and Arrow types of a table's columns."""
    return table_named(name).schema


def comment_statements() -> str:
    """The `--` comments of data/schema.sql as COMMENT statements."""
    statements = [
        f"COMMENT ON {f'COLUMN {of}.{column}' if column else of} IS {quoted(comment)};"
        for of, column, comment in _comments(SCHEMA.read_text(encoding="utf-8"))
    ]
    return "\n".join(statements)


def quoted(text: str) -> str:
    """Text as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def write_table(
    folder: Path, name: str, rows: "pd.DataFrame | Mapping[str, Any] | Sequence[Mapping[str, Any]]"
) -> Path:
    """Write rows as `<name>.parquet`, in the table's column order and types and sorted by its key.

    Columns may be left out, but not the key's. NaN becomes NULL; no value is rounded or parsed to fit a type.
    Timestamps are UTC. Equal rows give equal bytes.
    """
    import pandas as pd  # half a second, which only writers need

    table = table_named(name)
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows)
    if not len(frame.columns):
        frame = pd.DataFrame(columns=list(table.key))
    _check_columns(table, frame)
    fields = [field for field in table.schema if field.name in frame.columns]
    arrays = [_cast(table, field, frame[field.name]) for field in fields]
    content = pa.table(arrays, schema=pa.schema(fields))
    _check_key(table, content)
    path = folder / f"{name}.parquet"
    pq.write_table(content.sort_by([(column, "ascending") for column in table.key]), path, compression="zstd")
    return path


def _comments(sql: str) -> Iterator[tuple[str, str | None, str]]:
    """What the `--` comments of a script say: of a `TABLE x` or `MACRO x` itself, or of a column of table x."""
    above: list[str] = []
    name = ""
    for line in sql.splitlines():
        if line.startswith("--"):
            above.append(line.removeprefix("--").strip())
        elif created := re.match(r"CREATE ((?:TABLE|MACRO) (\w+))", line):
            name = created[2]
            yield created[1], None, " ".join(above)
        elif column := re.match(r" +(\w+) .*-- (.+)", line):
            yield name, column[1], column[2]
        else:
            above = []


def _check_columns(table: Table, frame: "pd.DataFrame") -> None:
    for column in frame.columns:
        if column not in table.schema.names:
            raise WorkError(
                f"columns of {table.name} must be among those of data/schema.sql, got {column!r}. "
                + _nearest(str(column), table.schema.names)
            )
    absent = [column for column in table.key if column not in frame.columns]
    if absent:
        raise WorkError(
            f"rows of {table.name} lack {', '.join(absent)} of their key, {', '.join(table.key)}. Add them."
        )


def _cast(table: Table, field: pa.Field, values: "pd.Series") -> pa.Array:
    """Values in a column's type; Arrow's own casts would also parse text, and count True as 1."""
    try:
        array = pa.array(values, from_pandas=True)
        if not _fits(array.type, field.type):
            raise pa.ArrowInvalid(f"{array.type}, as in {array.drop_null()[0]}")
        return array.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise WorkError(
            f"{table.name}.{field.name} must hold {field.type}, got {error}. Convert it where the rows are made."
        ) from error


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    types = pa.types
    if types.is_null(found):
        return True
    if types.is_list(found) and types.is_list(wanted):
        return _fits(found.value_type, wanted.value_type)
    kinds = (
        (types.is_integer, types.is_floating),
        (types.is_string, types.is_large_string),
        (types.is_timestamp,),
        (types.is_boolean,),
    )
    return any(any(is_kind(found) for is_kind in kind) and any(is_kind(wanted) for is_kind in kind) for kind in kinds)


def _check_key(table: Table, content: pa.Table) -> None:
    for column in table.key:
        if content[column].null_count:
            raise WorkError(
                f"{table.name}.{column} must have a value in every row, as part of the key, got "
                f"{content[column].null_count} missing. Fill it in, or leave those rows out."
            )
    counts = content.group_by(list(table.key)).aggregate([([], "count_all")])
    repeated = counts.filter(pa.compute.field("count_all") > 1)
    if repeated.num_rows:
        key = ", ".join(f"{column}={repeated[column][0]}" for column in table.key)
        raise WorkError(
            f"rows of {table.name} must differ in their key, got {repeated['count_all'][0]} with {key}. "
            "Write each once."
        )


def _nearest(name: str, names: Sequence[str] | Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"Did you mean {near[0]}?" if near else f"There are {', '.join(names)}."
