"""The claims of reports/claims: each a statement, the rule that decides it and the SELECT that gives its values."""

import re
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import duckdb

from tasks import places
from tasks.errors import UserError

CLAIMS = places.ROOT / "reports" / "claims"
REQUIRED = ("statement", "source", "over", "needs", "lacks", "rule")
OPTIONAL = ("unit", "evidence", "empty")
UNITS = ("seeds", "models", "configurations")  # what n may count

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


@dataclass(frozen=True)
class Claim:
    """A file of reports/claims; reports/README.md says what its header holds."""

    claim_id: str
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


def read_claims() -> list[Claim]:
    """Every claim of reports/claims, by name.

    Raises:
        UserError: a file isn't a claim; says which, what must hold, what came and what to do.
    """
    return [_read_claim(path) for path in sorted(CLAIMS.glob("*.sql"))]


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
            must = "a header line must be `-- name: text`, or `--   more text`"
            raise claim_error(path.stem, must, line, "Rewrite it.")
    known = (*REQUIRED, *OPTIONAL)
    if unknown := given.keys() - known:
        raise claim_error(path.stem, f"a header may have {', '.join(known)}", min(unknown), "Remove or rename it.")
    if absent := [name for name in REQUIRED if name not in given]:
        raise claim_error(path.stem, f"the header must have {', '.join(REQUIRED)}", f"no {absent[0]}", "Add it.")
    if given["over"] not in UNITS:
        raise claim_error(path.stem, f"over must be one of {', '.join(UNITS)}", given["over"], "Say what n counts.")
    select = "\n".join(lines[len(header) :]).strip("\n ;")
    _check_select(path.stem, select)
    rule = _parse_rule(path.stem, given.pop("rule"))
    return Claim(path.stem, select=select, rule=rule, **given)


def _parse_rule(claim_id: str, text: str) -> Rule:
    found = _RULE.fullmatch(text)
    if not found or (found[1] != "estimate" and found[2] not in ("<", "<=", "=")):  # the largest value is the worst
        of_estimate = "`holds if estimate > 0.2` (or <, >=, <=, =, between 0.5 and 2)"
        must = f"rule must be {of_estimate}, or `holds if every model < 1e-4` (or <=, =)"
        raise claim_error(claim_id, must, text, "Rewrite it.")
    subject, operator, bar, low, high = found.groups()
    low, high = (bar, bar) if operator else (low, high)
    return Rule(text, subject != "estimate", operator or "between", float(low), float(high))


def _check_select(claim_id: str, select: str) -> None:
    try:
        types = [statement.type for statement in duckdb.extract_statements(select)]
    except duckdb.Error as error:
        raise claim_error(claim_id, "below its header must be one SELECT", first_line(error), "Correct it.") from error
    if types != [duckdb.StatementType.SELECT]:
        came = ", ".join(kind.name for kind in types) or "nothing"
        raise claim_error(claim_id, "below its header must be one SELECT", came, "Write one that gives values.")


def claim_error(claim_id: str, must: str, came: str, do: str) -> UserError:
    """What is wrong with a file of reports/claims: what must hold, what came, what to do."""
    return UserError(f"reports/claims/{claim_id}.sql: {must}, got: {came.rstrip('.')}. {do}")


def first_line(error: Exception) -> str:
    """The first line of an error's message: DuckDB's go on with the query."""
    return str(error).strip().splitlines()[0]
