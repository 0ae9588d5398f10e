"""What the warehouse knows of a study, as an explorer's page takes it: columns of plain values."""

import math
from decimal import Decimal
from typing import Any

from headstream.tasks.results.study_results import StudyResults, query_files

DIGITS = 5  # of a number
PREFIX = "explorer_"  # of the names of queries


def study_tables(results: StudyResults) -> dict[str, dict[str, list[Any]]]:
    """The rows of each SELECT that is called explorer_*, by the rest of its name, a list a column."""
    names = sorted(name for name in query_files() if name.startswith(PREFIX))
    return {name.removeprefix(PREFIX): _columns(results.rows(name)) for name in names}


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [_plain(row[name]) for row in rows] for name in (rows[0] if rows else ())}


def _plain(value: Any) -> Any:
    """A value as JSON has it; a missing one is None."""
    if not isinstance(value, float | Decimal):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
