"""Writes data/README.md's list of views, tables and macros: `python -m headstream.tasks.results.table_reference`."""

import duckdb

from headstream.tasks.results.tables import SCHEMA, tables
from headstream.tasks.results.views import comment_on_tables_and_views, create_tables_and_views, views
from headstream.tasks.words.generated_pages import rewrite_below

README = SCHEMA.parent / "README.md"
README_MARK = "<!-- What follows is written by `python -m headstream.tasks.results.table_reference`. -->\n"


def tables_in_markdown() -> str:
    """Every view, table and macro in markdown, as data/README.md lists them."""
    with duckdb.connect() as connection:
        create_tables_and_views(connection)
        comment_on_tables_and_views(connection)
        comments = dict(connection.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall())
        macros = connection.execute(
            "SELECT function_name, parameters, comment FROM duckdb_functions() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        sections = [
            "## Views",
            *(_section(connection, view.name, view.comment) for view in sorted(views(), key=lambda v: v.name)),
            "## Tables",
            *(_section(connection, table.name, comments[table.name], table.key) for table in tables().values()),
            "## Macros",
            "\n".join(f"- `{name}({', '.join(inputs)})`: {comment}" for name, inputs, comment in macros),
        ]
    return "\n\n".join(sections) + "\n"


def _section(connection: duckdb.DuckDBPyConnection, name: str, comment: str, key: tuple[str, ...] = ()) -> str:
    columns = connection.execute(
        "SELECT column_name, data_type, comment FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index",
        [name],
    ).fetchall()
    rows = [f"| {f'**{column}**' if column in key else column} | {dtype} | {text} |" for column, dtype, text in columns]
    return "\n".join([f"### {name}", "", comment, "", "| column | type | holds |", "|---|---|---|", *rows])


if __name__ == "__main__":
    rewrite_below(README_MARK, README, tables_in_markdown())
