"""What the warehouse knows of a study, as an explorer's page takes it: columns of plain values."""

import math
from decimal import Decimal
from typing import Any

from headstream.tasks.results.study_results import StudyResults

DIGITS = 5  # of a number
TABLES = (
    "models", "scores", "heads", "checkpoints", "roles", "ablations", "importance", "eigenvalues", "skip_trigrams",
    "compositions", "causal_checks", "phase_changes", "probes", "similar_heads",
)  # fmt: skip


def study_tables(results: StudyResults) -> dict[str, dict[str, list[Any]]]:
    """The rows of reports/queries/explorer_*.sql, a list a column."""
    return {name: _columns(results.rows(f"explorer_{name}")) for name in TABLES}


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [_plain(row[name]) for row in rows] for name in (rows[0] if rows else ())}


def _plain(value: Any) -> Any:
    """A value as JSON has it; a missing one is None."""
    if not isinstance(value, float | Decimal):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
