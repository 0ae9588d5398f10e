"""What a report knows: one study of a warehouse, seen through named SELECTs."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from headstream.tasks import places
from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.results.tables import quoted
from headstream.tasks.results.views import views
from headstream.tasks.results.warehouse_reading import attach_warehouse

if TYPE_CHECKING:
    import pandas as pd

# Where SELECTs are: what several ask for, and what one section of the report does.
QUERY_FOLDERS = (places.ROOT / "reports" / "queries", places.ROOT / "tasks" / "report" / "sections")
COMPUTED = "memory.computed"  # a schema of a connection's own database
# Views that only choose rows of large tables: keeping these would take memory, and choosing them again takes little.
CHOOSING = {"last_heads", "last_compositions", "last_score_terms", "head_roles"}


class StudyResults:
    """The results of one study; the same question has the same answer in the same order, always.

    A view is computed once, when a question first reads it: many questions read the same few, which read one another.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, study: str) -> None:
        self.study = study
        self._connection = connection
        self._files = query_files()
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._frames: dict[str, "pd.DataFrame"] = {}
        self._views = {view.name: view.select for view in views() if view.name not in CHOOSING}
        (warehouse,) = connection.execute("SELECT current_database()").fetchone() or ()
        connection.execute(f"CREATE SCHEMA {COMPUTED}")
        connection.execute(f"SET search_path = '{COMPUTED},{warehouse}.main'")

    def sql(self, query: str) -> str:
        """A SELECT as it runs, and as it can be pasted into `headstream sql`."""
        lines = self._files[query].read_text(encoding="utf-8").splitlines()
        return "\n".join(dropwhile(lambda line: line.startswith("--"), lines)).replace("$study", quoted(self.study))

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The rows of a SELECT; None is a missing value."""
        if query not in self._rows:
            found = self._execute(query)
            names = [name for name, *_ in found.description or ()]
            self._rows[query] = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        return self._rows[query]

    def frame(self, query: str) -> "pd.DataFrame":
        """The rows of a SELECT; in columns of numbers NaN is a missing value."""
        if query not in self._frames:
            self._frames[query] = self._execute(query).df()
        return self._frames[query].copy()

    def _execute(self, query: str) -> duckdb.DuckDBPyConnection:
        select = self.sql(query)
        self._compute_views(select)
        return self._connection.execute(select)

    def _compute_views(self, select: str) -> None:
        """Keep the rows of each view that a SELECT reads, after those that it reads in turn."""
        for name in sorted(self._views.keys() & set(re.findall(r"\w+", select))):
            if view := self._views.pop(name, ""):
                self._compute_views(view)
                self._connection.execute(f"CREATE TABLE {COMPUTED}.{name} AS {view}")


def query_files() -> dict[str, Path]:
    """The file of each named SELECT."""
    return {path.stem: path for folder in QUERY_FOLDERS for path in folder.rglob("*.sql")}


def study_of_model(warehouse: Path, model_id: str) -> str | None:
    """A study that has a model of that id; None if none has, or nothing has run.

    Raises:
        WorkError: the warehouse is damaged, or another program writes to it.
    """
    if not warehouse.exists():
        return None
    with duckdb.connect() as connection:
        attach_warehouse(connection, warehouse)
        found = connection.execute("SELECT min(study) FROM study_models WHERE model_id = ?", [model_id]).fetchone()
    return found[0] if found else None


@contextmanager
def open_results(warehouse: Path, study: str) -> Iterator[StudyResults]:
    """Open a warehouse to read one study.

    Raises:
        UserError: the study isn't in it, or there is none.
        WorkError: it is damaged, or another program writes to it.
    """
    with duckdb.connect() as connection:
        attach_warehouse(connection, warehouse)
        try:
            # Threads would add up in another order each time, and sums of floats depend on it.
            connection.execute("SET threads = 1")
            results = StudyResults(connection, study)
            if not results.rows("study"):
                names = [name for (name,) in connection.execute("SELECT study FROM studies ORDER BY study").fetchall()]
                raise UserError(
                    f"a report must be of a study with results, got {study!r}. "
                    f"There are {', '.join(names) or 'none'}: `headstream run` makes them."
                )
            yield results
        except duckdb.Error as error:
            raise WorkError(
                f"{warehouse} must hold what data/schema.sql says, got: {str(error).splitlines()[0].rstrip('.')}."
                " Rebuild it: `headstream index`."
            ) from error
