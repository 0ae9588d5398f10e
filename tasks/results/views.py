"""The views of data/views, and the one way to create them beside the tables of data/schema.sql."""

import re
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import takewhile
from pathlib import Path

import duckdb

from headstream.tasks.results.tables import SCHEMA, comment_statements, quoted

VIEWS = SCHEMA.parent / "views"
SUFFIXES = {  # of columns that need no line in a header
    "_ci95": "half the width of the mean's 95 % confidence interval; NULL for fewer than three seeds",
    "_values": "the value of each seed, in the order of seeds",
    "_sd": "standard deviation over seeds",
}


@dataclass(frozen=True)
class View:
    """A file of data/views: a SELECT under a header that says what a row is and, column by column, what it holds.

    A line `heads.*` says that columns are as those of that name in `heads`; of several such lines the last one counts.
    """

    name: str
    comment: str
    columns: dict[str, str]
    like: list[str]
    select: str


def views() -> list[View]:
    """Every view of data/views, each after those that it reads."""
    read = {path.stem: _read_view(path) for path in sorted(VIEWS.glob("*.sql"))}
    needed = {name: read.keys() & set(re.findall(r"\w+", view.select)) - {name} for name, view in read.items()}
    return [read[name] for name in TopologicalSorter(needed).static_order()]


def create_tables_and_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Create every macro, table and view in the connection's current database, without their comments."""
    connection.execute(SCHEMA.read_text(encoding="utf-8"))
    for view in views():
        connection.execute(f"CREATE VIEW {view.name} AS {view.select}")


def comment_on_tables_and_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Say in the connection's current database what every macro, table, view and column holds.

    These hundreds of statements take longer than all else: leave them out where nobody asks for comments.
    """
    connection.execute(comment_statements())
    for view in views():
        connection.execute(f"COMMENT ON VIEW {view.name} IS {quoted(view.comment)}")
        for column, comment in _comments_of_columns(connection, view).items():
            connection.execute(f"COMMENT ON COLUMN {view.name}.{column} IS {quoted(comment)}")


def _read_view(path: Path) -> View:
    """A view from its file: header lines before the first empty `--` describe it, those after it its columns."""
    lines = path.read_text(encoding="utf-8").splitlines()
    header = [line.removeprefix("--").strip() for line in takewhile(lambda line: line.startswith("--"), lines)]
    empty = header.index("")
    like = [line.removesuffix(".*") for line in header[empty + 1 :] if line.endswith(".*")]
    columns = dict(line.split(": ", 1) for line in header[empty + 1 :] if not line.endswith(".*"))
    return View(path.stem, " ".join(header[:empty]), columns, like, "\n".join(lines[len(header) :]))


def _comments_of_columns(connection: duckdb.DuckDBPyConnection, view: View) -> dict[str, str]:
    """A comment for each column of a view: its header's, that of the tables that it is like, or that of its suffix."""
    columns = _comments_of(connection, [view.name])
    as_elsewhere = _comments_of(connection, view.like)
    comments = {}
    for name in columns:
        for suffix, text in SUFFIXES.items():
            if name.endswith(suffix):
                comments[name] = text
        if name in as_elsewhere:
            comments[name] = as_elsewhere[name]
    return comments | view.columns


def _comments_of(connection: duckdb.DuckDBPyConnection, names: list[str]) -> dict[str, str]:
    """Comments of the columns of tables and views; of those of one name, the last one's."""
    query = (
        "SELECT column_name, comment FROM duckdb_columns()"
        " WHERE database_name = current_database() AND list_contains($names, table_name)"
        " ORDER BY list_position($names, table_name)"
    )
    return dict(connection.execute(query, {"names": names}).fetchall())
