"""The claims of reports/claims: each a statement, the rule that decides it and the SELECT that gives its values."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import duckdb

from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.results.intervals import QUANTITIES, Range
from headstream.tasks.study.analyses import ANALYSES

SOURCES = places.CLAIMS / "sources.toml"
KINDS = ("finding", "description", "self-check")
MODELS = ("plain", "all")
REQUIRED = ("statement", "source", "needs", "lacks")
OPTIONAL = (
    "kind", "rule", "texts", "quantity", "range", "seeds", "control", "unit", "evidence", "empty", "changed", "models",
    "stages"
)  # fmt: skip
SEEDS = 3  # fewest that decide a configuration, unless a claim asks for more

_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_RULE = re.compile(rf"holds if (estimate|every \w+) (?:(<=|>=|<|>|=) ({_NUMBER})|between ({_NUMBER}) and ({_NUMBER}))")
_RANGE = re.compile(rf"(-inf|{_NUMBER}) to (inf|{_NUMBER})")


@dataclass(frozen=True)
class Rule:
    """The estimates with which a claim holds."""

    text: str
    every: str | None  # of what the worst value decides, like `model`; None: the interval of the estimate does
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
        """The verdict of an interval: `holds`, `fails` or `undecided`."""
        sides = {self.side(ci_low), self.side(ci_high)}
        return "holds" if sides == {0} else "fails" if len(sides) == 1 else "undecided"


@dataclass(frozen=True)
class Source:
    """The place where a claim was made: in words, its link, and the titles of the texts through which it came."""

    words: str
    url: str | None
    texts: str | None


@dataclass(frozen=True)
class Claim:
    """A file of reports/claims; reports/README.md says what its header holds."""

    claim_id: str
    kind: str
    statement: str
    source: Source
    needs: str
    lacks: str
    rule: Rule | None  # None: a description
    select: str
    quantity: str
    within: Range  # what a mean can be
    seeds: int
    control: str | None
    unit: str | None
    evidence: str | None
    empty: str | None
    changed: str | None
    stages: tuple[str, ...]  # that it needs besides those whose tables its SELECT can't do without
    models: str  # that it looks at: those without interventions in training, or all


def read_claims() -> list[Claim]:
    """Every claim of reports/claims, by name.

    Raises:
        UserError: a file isn't a claim; says which, what must hold, what came and what to do.
    """
    sources = tomllib.loads(SOURCES.read_text(encoding="utf-8"))
    return [_read_claim(path, sources) for path in sorted(places.CLAIMS.glob("*.sql"))]


def _read_claim(path: Path, sources: Mapping[str, Mapping[str, str]]) -> Claim:
    lines = path.read_text(encoding="utf-8").splitlines()
    header = list(takewhile(lambda line: line.startswith("--"), lines))
    given = _read_header(path.stem, header)
    select = "\n".join(lines[len(header) :]).strip("\n ;")
    _check_select(path.stem, select)
    kind = _one_of(path.stem, "kind", given.pop("kind", "finding"), KINDS)
    if (kind == "description") == ("rule" in given):
        must, came = "a claim must have a rule, and a description none", "a rule" if "rule" in given else "no rule"
        raise claim_error(path.stem, must, came, "Correct `kind` or `rule`.")
    rule = _parse_rule(path.stem, given.pop("rule")) if "rule" in given else None
    if kind == "self-check" and not (rule and rule.every):
        must = "the rule of a self-check must be `holds if every model < 1e-4` (or <=, =)"
        raise claim_error(path.stem, must, rule.text if rule else "none", "Rewrite it.")
    source, texts = given.pop("source"), given.pop("texts", None)
    return Claim(
        claim_id=path.stem,
        kind=kind,
        rule=rule,
        select=select,
        source=_source(path.stem, source, texts, sources),
        quantity=_one_of(path.stem, "quantity", given.pop("quantity", "mean"), QUANTITIES),
        within=_parse_range(path.stem, given.pop("range", "-inf to inf")),
        seeds=_parse_seeds(path.stem, given.pop("seeds", str(SEEDS))),
        statement=given["statement"],
        needs=given["needs"],
        lacks=given["lacks"],
        control=given.get("control"),
        unit=given.get("unit"),
        evidence=given.get("evidence"),
        empty=given.get("empty"),
        changed=given.get("changed"),
        stages=_parse_stages(path.stem, given.get("stages")),
        models=_one_of(path.stem, "models", given.pop("models", "plain"), MODELS),
    )


def _read_header(claim_id: str, header: list[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for line in header:
        if field := re.match(r"-- (\w+): +(\S.*)", line):
            given[field[1]] = field[2].strip()
        elif (more := re.match(r"-- {2,}(\S.*)", line)) and given:
            given[[*given][-1]] += f" {more[1].strip()}"
        else:
            must = "a header line must be `-- name: text`, or `--   more text`"
            raise claim_error(claim_id, must, line, "Rewrite it.")
    known = (*REQUIRED, *OPTIONAL)
    unknown = given.keys() - {*known}
    absent = [name for name in REQUIRED if name not in given]
    if unknown:
        raise claim_error(claim_id, f"a header may have {', '.join(known)}", min(unknown), "Remove or rename it.")
    if absent:
        raise claim_error(claim_id, f"the header must have {', '.join(REQUIRED)}", f"no {absent[0]}", "Add it.")
    return given


def _one_of(claim_id: str, name: str, came: str, known: tuple[str, ...]) -> str:
    if came not in known:
        raise claim_error(claim_id, f"{name} must be one of {', '.join(known)}", came, "Choose one.")
    return came


def _parse_rule(claim_id: str, text: str) -> Rule:
    found = _RULE.fullmatch(text)
    if not found or (found[1] != "estimate" and found[2] not in ("<", "<=", "=")):  # the largest value is the worst
        of_estimate = "`holds if estimate > 0.2` (or <, >=, <=, =, between 0.5 and 2)"
        must = f"rule must be {of_estimate}, or `holds if every model < 1e-4` (or <=, =)"
        raise claim_error(claim_id, must, text, "Rewrite it.")
    subject, operator, bar, low, high = found.groups()
    low, high = (bar, bar) if operator else (low, high)
    every = None if subject == "estimate" else subject.removeprefix("every ")
    return Rule(text, every, operator or "between", float(low), float(high))


def _parse_range(claim_id: str, text: str) -> Range:
    found = _RANGE.fullmatch(text)
    if not found or float(found[1]) >= float(found[2]):
        raise claim_error(claim_id, "range must be like `0 to 1` or `-inf to 1`", text, "Rewrite it.")
    return float(found[1]), float(found[2])


def _parse_seeds(claim_id: str, text: str) -> int:
    if not text.isdecimal() or int(text) < SEEDS:
        raise claim_error(claim_id, f"seeds must be a number from {SEEDS} on", text, "Correct it, or leave it out.")
    return int(text)


def _parse_stages(claim_id: str, text: str | None) -> tuple[str, ...]:
    stages = tuple(text.split(", ")) if text else ()
    for stage in stages:
        _one_of(claim_id, "each of stages", stage, tuple(ANALYSES))
    return stages


def _source(claim_id: str, source: str, texts: str | None, sources: Mapping[str, Mapping[str, str]]) -> Source:
    key, _, section = source.partition(", ")
    keys = [key, *(texts.split(", ") if texts else [])]
    unknown = [key for key in keys if key not in sources]
    if unknown:
        must = f"source and texts must be keys of {SOURCES.name}: {', '.join(sources)}"
        raise claim_error(claim_id, must, unknown[0], "Correct it, or add it there.")
    where = sources[key]
    words = ", ".join(part for part in (where.get("authors"), where["title"], section) if part)
    titles = " and ".join(sources[key]["title"] for key in keys[1:])
    return Source(words, where.get("url"), titles or None)


def _check_select(claim_id: str, select: str) -> None:
    try:
        types = [statement.type for statement in duckdb.extract_statements(select)]
    except duckdb.Error as error:
        raise claim_error(claim_id, "below its header must be one SELECT", first_line(error), "Correct it.") from error
    if types != [duckdb.StatementType.SELECT]:
        came = ", ".join(kind.name for kind in types) or "nothing"
        raise claim_error(claim_id, "below its header must be one SELECT", came, "Write one that gives values.")


def claim_error(claim_id: str, must: str, came: str, do: str) -> UserError:
    """The error of a file of reports/claims: what must hold, what came, what to do."""
    return UserError(f"reports/claims/{claim_id}.sql: {must}, got: {came.rstrip('.')}. {do}")


def first_line(error: Exception) -> str:
    """The first line of an error's message: DuckDB's go on with the query."""
    return str(error).strip().splitlines()[0]
