"""What a study says of the claims in reports/claims: that they hold, fail, are undecided, or were not tested."""

import re
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from tasks.errors import UserError
from tasks.results.claim_files import Claim, claim_error, first_line, read_claims
from tasks.results.sql import run_sql
from tasks.results.tables import quoted, table_schema

ENOUGH = 2  # values for an interval
_AS_IN_ITS_FILE = ("claim_id", "statement", "source", "over", "unit", "evidence")

# What a claim's values come to: an estimate and its 95 % interval.
_MEAN = "avg(value), avg(value) - ci95(value), avg(value) + ci95(value)"
_SHARE = "avg(value), share_low(avg(value), count(value)), share_high(avg(value), count(value))"
_WORST = "max(value), NULL, NULL"


def insert_claims(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `claims`, of which the connection's current database has none, from its other tables.

    Raises:
        UserError: a claim's file is wrong.
    """
    connection.execute("SET threads = 1")  # sums of floats depend on the order in which threads add up
    claims = read_claims()
    studies = connection.execute("SELECT study FROM studies ORDER BY study").fetchall()
    rows = [row for (study,) in studies for row in decide(connection, claims, study)]
    connection.register("decided", pa.Table.from_pylist(rows, schema=table_schema("claims")))
    connection.execute("INSERT INTO claims BY NAME FROM decided")
    connection.unregister("decided")


def decide(connection: duckdb.DuckDBPyConnection, claims: Sequence[Claim], study: str) -> list[dict[str, Any]]:
    """The rows of `claims` that a study's other tables give.

    Raises:
        UserError: a claim's file is wrong.
    """
    _keep_cells_of(connection, study)
    return [
        {"study": study, "rule": claim.rule.text, **{name: getattr(claim, name) for name in _AS_IN_ITS_FILE}}
        | _verdict(connection, claim, study)
        for claim in claims
    ]


def lacking_for_claims(
    connection: duckdb.DuckDBPyConnection, claims: Sequence[Claim], study: str
) -> dict[str, str | None]:
    """What a study's models lack to decide each claim, before anything is measured; None if they can.

    Raises:
        UserError: a claim's file is wrong.
    """
    _keep_cells_of(connection, study)
    return {claim.claim_id: _lack(connection, claim, study) for claim in claims}


def claims_of(warehouse: Path, study: str, in_words: bool) -> pa.Table:
    """What a study says of every claim, the decided ones first: rows of `claims`, or a few words on each.

    Raises:
        UserError: the study isn't in the warehouse.
    """
    columns, table = ("verdict, claim_id AS claim, finding", "claim_findings") if in_words else ("*", "claims")
    select = f"SELECT {columns} FROM {table} WHERE study = {quoted(study)} ORDER BY verdict_rank(verdict), claim_id"
    found = run_sql(warehouse, select)
    if not found.num_rows:
        raise UserError(f"claims need a study that has run, got {study!r}. Run `headstream run {study}` first.")
    return found


def _keep_cells_of(connection: duckdb.DuckDBPyConnection, study: str) -> None:
    """Put the study's own cells, worked out once, in front of the view of all."""
    connection.execute("DROP TABLE IF EXISTS temp.cells")
    connection.execute("CREATE TEMP TABLE cells AS FROM cells WHERE study = ?", [study])


def _count_needed(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> int:
    """How many cells are as the claim needs them; 1 if it says what they must be together."""
    needs = claim.needs.replace("$study", quoted(study))
    try:
        found = connection.execute(f"SELECT count(*) FILTER (met) FROM (SELECT ({needs}) AS met FROM cells)")
        return found.fetchall()[0][0]
    except duckdb.Error as error:
        must, do = "needs must be a condition on cells", "`headstream sql` lists their columns."
        raise claim_error(claim.claim_id, must, first_line(error), do) from error


def _lack(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> str | None:
    _estimate(connection, claim, study)  # so that its errors come before anything is trained
    n_needed = _count_needed(connection, claim, study)
    if not n_needed:
        return claim.lacks
    if claim.rule.every or claim.over == "configurations":
        return None
    if claim.over == "models":
        return None if n_needed >= ENOUGH else f"{ENOUGH} or more {claim.lacks}"
    n_seeds = connection.execute("SELECT count(DISTINCT seed) FROM cells").fetchall()[0][0]
    return None if n_seeds >= ENOUGH else f"{ENOUGH} or more seeds"


def _verdict(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> dict[str, Any]:
    if not _count_needed(connection, claim, study):
        return {"verdict": "not tested", "reason": f"lacks {claim.lacks}"}
    estimate, ci_low, ci_high, n = _estimate(connection, claim, study)
    if estimate is None:
        verdict, reason = "not tested", claim.empty or _nothing_in(claim)
    elif claim.rule.every:
        verdict, reason = claim.rule.verdict(estimate, estimate), None
    elif n < ENOUGH or ci_low is None or ci_high is None:
        verdict, reason = "undecided", f"an interval needs {ENOUGH} {claim.over}"
    else:
        verdict = claim.rule.verdict(ci_low, ci_high)
        reason = "the interval holds the bar" if verdict == "undecided" else None
    found = {"estimate": estimate, "ci_low": ci_low, "ci_high": ci_high, "n": n}
    return {**found, "verdict": verdict, "reason": reason}


def _estimate(
    connection: duckdb.DuckDBPyConnection, claim: Claim, study: str
) -> tuple[float | None, float | None, float | None, int]:
    """What a claim's values come to: estimate, ends of its interval, and n.

    No estimate if n is 0, an interval from two values on unless the worst of them decides.

    Raises:
        UserError: its SELECT is wrong, or gives no numbers.
    """
    select = claim.select.replace("$study", quoted(study))
    try:
        found = connection.sql(select)
        types = dict(zip(found.columns, found.types, strict=True))
        if absent := {"value", *(["seed"] if claim.over == "seeds" else [])} - types.keys():
            must, came = f"its SELECT must give the column {min(absent)}", ", ".join(found.columns)
            raise claim_error(claim.claim_id, must, came, "Name it so.")
        summary = _WORST if claim.rule.every else _SHARE if types["value"] == "BOOLEAN" else _MEAN
        of_unit = "avg(value::DOUBLE) AS value GROUP BY seed" if claim.over == "seeds" else "value::DOUBLE AS value"
        values = f"(FROM ({select}\n) SELECT {of_unit})"
        row = connection.execute(f"SELECT {summary}, count(value) FROM {values}").fetchall()[0]
    except duckdb.Error as error:
        must, do = "its SELECT must run and give numbers or booleans", "`headstream sql` lists the tables."
        raise claim_error(claim.claim_id, must, first_line(error), do) from error
    if any(isinstance(number, float) and isnan(number) for number in row):
        do = "Give NULL where there is no value."
        raise claim_error(claim.claim_id, "values must be numbers", f"NaN for {study}", do)
    return row


def _nothing_in(claim: Claim) -> str:
    """Says that what the SELECT reads, besides the models, holds no value."""
    inner = {"cells", "models", *re.findall(r"(\w+) AS \(", claim.select)}
    read = dict.fromkeys(re.findall(r"\b(?:FROM|JOIN) (\w+)", claim.select))
    return f"no values in {', '.join(name for name in read if name not in inner) or 'cells'}"
