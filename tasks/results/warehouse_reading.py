"""Opening the warehouse to read it."""

from pathlib import Path

import duckdb

from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.results.tables import quoted


def attach_warehouse(connection: duckdb.DuckDBPyConnection, warehouse: Path) -> None:
    """Make the warehouse, read-only, what a connection's queries are about.

    Raises:
        UserError: there is none yet.
        WorkError: it is damaged, or another program writes to it.
    """
    if not warehouse.exists():
        raise UserError("no results yet: run `headstream run quick`")
    try:
        # duckdb.connect(path) would share the database that another thread has open, be it that of an older file.
        connection.execute(f"ATTACH {quoted(str(warehouse))} AS results (READ_ONLY)")
        connection.execute("USE results")
    except duckdb.Error as error:
        raise WorkError(
            f"{warehouse} is damaged, or another program writes to it: {str(error).splitlines()[0]} "
            "Close other programs that use it, or rebuild it: `headstream index`."
        ) from error
