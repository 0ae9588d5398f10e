"""What a study says of the claims in reports/claims: that they hold, fail, are undecided, or were not tested."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from tasks import places
from tasks.errors import UserError
from tasks.results.sql import run_sql
from tasks.results.tables import quoted, table_schema

CLAIMS = places.ROOT / "reports" / "claims"
REQUIRED = ("statement", "source", "over", "needs", "lacks", "rule")
OPTIONAL = ("unit", "evidence", "empty")
UNITS = ("seeds", "models", "configurations")  # what n may count
ENOUGH = 2  # values for an interval

_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_RULE = re.compile(rf"holds if (estimate|every \w+) (?:(<=|>=|<|>|=) ({_NUMBER})|between ({_NUMBER}) and ({_NUMBER}))")


@dataclass(frozen=True)
class Rule:
    """Which estimates are good."""

    text: str
    every: bool  # the estimate is the worst of all values, and decides alone; else its interval does
    operator: str
    low: float
    high: float

    def side(self, value: float) -> int:
        """-1 below the good values, 0 among them, 1 above."""
        match self.operator:
            case ">":
                return -(value <= self.low)
            case ">=":
                return -(value < self.low)
            case "<":
                return int(value >= self.high)
            case "<=":
                return int(value > self.high)
        return (value > self.high) - (value < self.low)

    def verdict(self, ci_low: float, ci_high: float) -> str:
        """What the interval says."""
        sides = {self.side(ci_low), self.side(ci_high)}
        return "holds" if sides == {0} else "fails" if len(sides) == 1 else "undecided"


class Estimate(NamedTuple):
    """What a claim's SELECT gives: no estimate if n is 0; from two values on an interval, unless the worst decides."""

    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    n: int


@dataclass(frozen=True)
class Claim:
    """A file of reports/claims; reports/README.md says what its header holds."""

    file: str
    statement: str
    source: str
    over: str
    needs: str
    lacks: str
    rule: Rule
    select: str
    unit: str | None = None
    evidence: str | None = None
    empty: str | None = None

    @property
    def claim_id(self) -> str:
        """What tables call it."""
        return Path(self.file).stem


def read_claims() -> list[Claim]:
    """Every claim of reports/claims, by name.

    Raises:
        UserError: a file isn't a claim; says which, what must hold, what came and what to do.
    """
    return [_read_claim(path) for path in sorted(CLAIMS.glob("*.sql"))]


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
    _make_cells(connection, study)
    return [_row(claim, study) | _verdict(connection, claim, study) for claim in claims]


def undecidable(connection: duckdb.DuckDBPyConnection, claims: Sequence[Claim], study: str) -> dict[str, str | None]:
    """What a study's models lack to decide each claim, before anything is measured; None if they can.

    Raises:
        UserError: a claim's file is wrong.
    """
    _make_cells(connection, study)
    return {claim.claim_id: _lack(connection, claim, study) for claim in claims}


def claims_of(warehouse: Path, study: str, in_words: bool = False) -> pa.Table:
    """What a study says of every claim, the decided ones first: rows of `claims`, or a few words on each.

    Raises:
        UserError: the study isn't in the warehouse.
    """
    columns, table = ("verdict, claim_id AS claim, finding", "claim_findings") if in_words else ("*", "claims")
    order = "list_position(['holds', 'fails', 'undecided', 'not tested'], verdict), claim_id"
    found = run_sql(warehouse, f"SELECT {columns} FROM {table} WHERE study = {quoted(study)} ORDER BY {order}")
    if not found.num_rows:
        raise UserError(f"claims need a study that has run, got {study!r}. Run `headstream run {study}` first.")
    return found


def _read_claim(path: Path) -> Claim:
    lines = path.read_text(encoding="utf-8").splitlines()
    header = list(takewhile(lambda line: line.startswith("--"), lines))
    given: dict[str, str] = {}
    for line in header:
        if field := re.match(r"-- (\w+): +(\S.*)", line):
            given[field[1]] = field[2].strip()
        elif (more := re.match(r"-- {2,}(\S.*)", line)) and given:
            given[[*given][-1]] += f" {more[1].strip()}"
        else:
            raise _error(path.name, "a header line must be `-- name: text`, or `--   more text`", line, "Rewrite it.")
    known = (*REQUIRED, *OPTIONAL)
    if unknown := given.keys() - known:
        raise _error(path.name, f"a header may have {', '.join(known)}", min(unknown), "Remove or rename it.")
    if absent := [name for name in REQUIRED if name not in given]:
        raise _error(path.name, f"the header must have {', '.join(REQUIRED)}", f"no {absent[0]}", "Add it.")
    if given["over"] not in UNITS:
        raise _error(path.name, f"over must be one of {', '.join(UNITS)}", given["over"], "Say what n counts.")
    select = "\n".join(lines[len(header) :]).strip()
    _check_select(path.name, select)
    rule = _parse_rule(path.name, given.pop("rule"))
    return Claim(path.name, select=select, rule=rule, **given)


def _parse_rule(file: str, text: str) -> Rule:
    found = _RULE.fullmatch(text)
    if not found:
        forms = "`holds if estimate > 0.2` (or <, >=, <=, =, between 0.5 and 2), or `holds if every model < 1e-4`"
        raise _error(file, f"rule must be {forms}", text, "Rewrite it.")
    subject, operator, bar, low, high = found.groups()
    low, high = (bar, bar) if operator else (low, high)
    return Rule(text, subject != "estimate", operator or "between", float(low), float(high))


def _check_select(file: str, select: str) -> None:
    try:
        types = [statement.type for statement in duckdb.extract_statements(select)]
    except duckdb.Error as error:
        raise _error(file, "below its header must be one SELECT", _first_line(error), "Correct it.") from error
    if types != [duckdb.StatementType.SELECT]:
        came = ", ".join(kind.name for kind in types) or "nothing"
        raise _error(file, "below its header must be one SELECT", came, "Write one that gives estimate, ci_low, ...")


def _make_cells(connection: duckdb.DuckDBPyConnection, study: str) -> None:
    """The table that `needs` is asked of: the study's models, and where each is in its grid."""
    cells = "SELECT cell, models.* FROM study_models JOIN models USING (model_id) WHERE study = ?"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE cells AS {cells}", [study])


def _count_needed(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> int:
    """How many cells are as the claim needs them; 1 if it says what they must be together."""
    needs = claim.needs.replace("$study", quoted(study))
    try:
        found = connection.execute(f"SELECT count(*) FILTER (met) FROM (SELECT ({needs}) AS met FROM cells)")
        return found.fetchall()[0][0]
    except duckdb.Error as error:
        must, do = "needs must be a condition on cells", "They have `cell` and the columns of models."
        raise _error(claim.file, must, _first_line(error), do) from error


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


def _row(claim: Claim, study: str) -> dict[str, Any]:
    """What a row of `claims` says, whatever the study found."""
    names = ("claim_id", "statement", "source", "over", "unit", "evidence")
    return {"study": study, "rule": claim.rule.text, **{name: getattr(claim, name) for name in names}}


def _verdict(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> dict[str, Any]:
    if not _count_needed(connection, claim, study):
        return {"verdict": "not tested", "reason": f"lacks {claim.lacks}"}
    found = _estimate(connection, claim, study)
    if found.estimate is None:
        verdict, reason = "not tested", claim.empty or _nothing_in(claim)
    elif claim.rule.every:
        verdict, reason = claim.rule.verdict(found.estimate, found.estimate), None
    elif found.n < ENOUGH or found.ci_low is None or found.ci_high is None:
        verdict, reason = "undecided", f"an interval needs {ENOUGH} {claim.over}"
    else:
        verdict = claim.rule.verdict(found.ci_low, found.ci_high)
        reason = "the interval holds the bar" if verdict == "undecided" else None
    return found._asdict() | {"verdict": verdict, "reason": reason}


def _estimate(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> Estimate:
    *values, n = _select(connection, claim, study)
    try:
        estimate, ci_low, ci_high = (None if value is None or isnan(value) else float(value) for value in values)
    except TypeError:
        came = f"{', '.join(map(str, values))} for {study}"
        raise _error(claim.file, "estimate and interval must be numbers", came, "Cast them.") from None
    if (estimate is None) != (n == 0):
        raise _error(claim.file, "estimate must be NULL just if n is 0", f"n = {n} for {study}", "Correct it.")
    if n >= ENOUGH and not claim.rule.every and (ci_low is None or ci_high is None):
        raise _error(claim.file, f"an interval must be given from n = {ENOUGH} on", f"none for {study}", "Use ci95().")
    return Estimate(estimate, ci_low, ci_high, n)


def _select(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> tuple[Any, ...]:
    """The row that the claim's SELECT gives."""
    try:
        found = connection.execute(claim.select.replace("$study", quoted(study)))
        names, rows = [name for name, *_ in found.description or ()], found.fetchall()
    except duckdb.Error as error:
        do = "`headstream sql` lists the tables."
        raise _error(claim.file, "its SELECT must run", _first_line(error), do) from error
    if names != [*Estimate._fields]:
        must = f"its SELECT must give the columns {', '.join(Estimate._fields)}"
        raise _error(claim.file, must, ", ".join(names), "Name them so.")
    if len(rows) != 1:
        raise _error(claim.file, "its SELECT must give one row", f"{len(rows)} for {study}", "Aggregate it.")
    return rows[0]


def _nothing_in(claim: Claim) -> str:
    """Says that what the SELECT reads, besides the models, holds no value."""
    inner = {"models", "study_models", *re.findall(r"(\w+) AS \(", claim.select)}
    read = dict.fromkeys(re.findall(r"\b(?:FROM|JOIN) (\w+)", claim.select))
    return f"no values in {', '.join(name for name in read if name not in inner)}"


def _error(file: str, must: str, came: str, do: str) -> UserError:
    return UserError(f"reports/claims/{file}: {must}, got: {came.rstrip('.')}. {do}")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
