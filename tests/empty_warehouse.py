"""Warehouses without rows, for tests to fill."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
from tiny import FOLDER

from headstream.tasks.results.tables import quoted
from headstream.tasks.results.warehouse_template import write_empty_warehouse


@contextmanager
def empty_warehouse(path: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that fills an empty warehouse; one that is gone afterwards, if it has no path."""
    with TemporaryDirectory(dir=FOLDER.name) as folder, duckdb.connect() as connection:
        file = path or Path(folder) / "w.duckdb"
        write_empty_warehouse(file)
        connection.execute(f"ATTACH {quoted(str(file))} AS filled")
        connection.execute("USE filled")
        yield connection
        connection.execute("USE memory")
        connection.execute("DETACH filled")
