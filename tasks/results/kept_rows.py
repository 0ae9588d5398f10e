"""Rows of an earlier warehouse that still count: they are taken over, not read from files and worked out again.

Every row is about the subject that its key begins with: a model, a corpus or a study. It counts as long as no artifact
about that subject comes, goes or changes. The database `kept` has a view of such rows for each table.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from headstream.tasks.results.tables import SCHEMA, quoted, table_named, tables

# A study's claims are decided from itself, its models, their corpora, and which heads match.
_STUDIES_TO_DECIDE = """
    WITH matched AS (SELECT model_id, other_model_id FROM head_matches),
        earlier_matched AS (SELECT model_id, other_model_id FROM earlier.head_matches)
    SELECT subject AS study FROM kept.changed
    UNION
    SELECT study FROM study_models LEFT JOIN models USING (model_id)
    WHERE model_id IN (FROM kept.changed) OR corpus_id IN (FROM kept.changed)
    UNION
    SELECT study
    FROM study_models
    JOIN (
        (FROM matched EXCEPT FROM earlier_matched) UNION ALL (FROM earlier_matched EXCEPT FROM matched)
    ) USING (model_id)
"""


def attach_earlier(connection: duckdb.DuckDBPyConnection, warehouse: Path | None) -> None:
    """Open an earlier warehouse, or an empty one, as `earlier`."""
    connection.execute("ATTACH ':memory:' AS kept")
    if warehouse:
        connection.execute(f"ATTACH {quoted(str(warehouse))} AS earlier (READ_ONLY)")
    else:
        connection.execute("ATTACH ':memory:' AS earlier")
        connection.execute("USE earlier")
        connection.execute(SCHEMA.read_text(encoding="utf-8"))


def changed_subjects(connection: duckdb.DuckDBPyConnection, artifacts: pa.Table) -> set[str]:
    """The subjects about which the artifacts of the earlier warehouse and those of the next differ."""
    connection.register("found", artifacts)
    connection.execute("""
        CREATE OR REPLACE TABLE kept.changed AS
        SELECT DISTINCT subject
        FROM ((FROM earlier.artifacts EXCEPT FROM found) UNION ALL (FROM found EXCEPT FROM earlier.artifacts))
    """)
    connection.unregister("found")
    return {subject for (subject,) in connection.execute("FROM kept.changed").fetchall()}


def keep_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the views of rows about subjects that have not changed."""
    for table in tables().values():
        subjects = [name for name in ("other_model_id", table.key[0]) if name in table.key]
        unchanged = " AND ".join(f"{name} NOT IN (FROM kept.changed)" for name in subjects)
        connection.execute(f"CREATE VIEW kept.{table.name} AS FROM earlier.{table.name} WHERE {unchanged}")


def keep_claims(connection: duckdb.DuckDBPyConnection) -> None:
    """Leave claims to be decided again out of their views, now that all other tables are there."""
    connection.execute(f"CREATE TABLE kept.to_decide AS {_STUDIES_TO_DECIDE}")
    for name in ("claims", "claim_configurations"):
        decided = f"FROM earlier.{name} WHERE study NOT IN (FROM kept.to_decide)"
        connection.execute(f"CREATE OR REPLACE VIEW kept.{name} AS {decided}")


def insert_in_order(
    connection: duckdb.DuckDBPyConnection, name: str, fresh: str, kept: str, parameters: Sequence[Any] = ()
) -> None:
    """Fill a table with the rows of two SELECTs in the order of its key, so that it is the same however they divide."""
    rows = f"({fresh}) UNION ALL BY NAME ({kept})"
    key = ", ".join(table_named(name).key)
    connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM ({rows}) ORDER BY {key}", parameters)
