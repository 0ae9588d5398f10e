"""Warehouses without rows, copied from one that is made once: its hundreds of comments take most of a second."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import duckdb
from tiny import FOLDER

from headstream.tasks.results.tables import quoted
from headstream.tasks.results.views import create_tables_and_views


@cache
def _made() -> Path:
    path = Path(mkdtemp(prefix="warehouse-", dir=FOLDER.name)) / "empty.duckdb"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH {quoted(str(path))} AS made")
        connection.execute("USE made")
        create_tables_and_views(connection)
    return path


@contextmanager
def empty_warehouse(path: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that fills an empty warehouse; one that is gone afterwards, if it has no path."""
    with TemporaryDirectory(dir=FOLDER.name) as folder, duckdb.connect() as connection:
        file = shutil.copyfile(_made(), path or Path(folder) / "w.duckdb")
        connection.execute(f"ATTACH {quoted(str(file))} AS filled")
        connection.execute("USE filled")
        yield connection
        connection.execute("USE memory")
        connection.execute("DETACH filled")
