"""What a study says of the claims in reports/claims: findings with a verdict, descriptions, self-checks.

The unit is the seed. A finding is decided for each configuration (models that differ in their seed alone) from its
seeds, never over configurations taken together; those that agree decide it, those that don't make it depend on what
they are.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import hypot, isnan
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from tasks.errors import UserError
from tasks.results.claim_files import KINDS, Claim, Rule, claim_error, first_line, read_claims
from tasks.results.configurations import depends_on, named
from tasks.results.intervals import (
    OF_COUNTED,
    Interval,
    Range,
    Values,
    difference_of_shares,
    mean_interval,
    share_interval,
)
from tasks.results.kept_rows import insert_in_order
from tasks.results.sql import run_sql
from tasks.results.tables import quoted, table_schema

AS_RANDOM = "holds, as for random weights"
MOST_SEEDS = 100  # that agreeing models are asked for, before a plan gives up

Row = dict[str, Any]

_LISTED = """
    SELECT kind, verdict, claim_id AS claim, finding
    FROM claim_findings
    WHERE study = $study AND verdict <> 'passes'
    UNION ALL
    SELECT 'self-check', 'passes', 'self-checks', self_checks
    FROM claims_in_short
    WHERE study = $study AND self_checks IS NOT NULL
"""


class _Value(NamedTuple):
    """What one seed of a configuration gives."""

    place: str  # of the grid, without its seed
    seed: int
    value: float
    control: float | None
    counted: float
    low: float | None = None  # ends of the value's own 95 % interval over text, where all seeds share that text
    high: float | None = None


def insert_claims(connection: duckdb.DuckDBPyConnection, kept: str = "main") -> None:
    """Fill `claims` and `claim_configurations`, empty in the connection's current database, from its other tables.

    Studies whose claims are in the database `kept` are not decided again.

    Raises:
        UserError: a claim's file is wrong.
    """
    connection.execute("SET threads = 1")  # sums of floats depend on the order in which threads add up
    claims = read_claims()
    undecided = f"SELECT study FROM studies WHERE study NOT IN (SELECT study FROM {kept}.claims) ORDER BY study"
    studies = connection.execute(undecided).fetchall()
    decided = [decided for (study,) in studies for decided in decide(connection, claims, study)]
    rows = {
        "claims": [row for row, _ in decided],
        "claim_configurations": [row for _, parts in decided for row in parts],
    }
    for name, of_table in rows.items():
        connection.register("decided", pa.Table.from_pylist(of_table, schema=table_schema(name)))
        insert_in_order(connection, name, "FROM decided", f"FROM {kept}.{name}")
        connection.unregister("decided")


def decide(connection: duckdb.DuckDBPyConnection, claims: Sequence[Claim], study: str) -> list[tuple[Row, list[Row]]]:
    """For each claim the row of `claims` that a study's other tables give, and those of `claim_configurations`.

    Raises:
        UserError: a claim's file is wrong.
    """
    _keep_cells_of(connection, study)
    decided = []
    for claim in claims:
        found, parts = _verdict(connection, claim, study)
        about = {
            "study": study,
            "claim_id": claim.claim_id,
            "kind": claim.kind,
            "rule": claim.rule and claim.rule.text,
            "source": claim.source.words,
            "source_url": claim.source.url,
            "texts": claim.source.texts,
            **{name: getattr(claim, name) for name in ("statement", "unit", "evidence", "changed")},
        }
        decided.append((about | found, [{"study": study, "claim_id": claim.claim_id} | part for part in parts]))
    return decided


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
    """What a study says of every claim: rows of `claims`, or a few words on each.

    In words findings come first, then descriptions, then self-checks in one line (those that fail by name), and last
    what was not tested.

    Raises:
        UserError: the study isn't in the warehouse.
    """
    whole = ("FROM claims WHERE study = $study", "*", "claim_id")
    select, columns, name = (_LISTED, "verdict, claim, finding", "claim") if in_words else whole
    order = f"verdict = 'not tested', list_position({[*KINDS]}, kind), verdict_rank(verdict)"
    found = run_sql(
        warehouse, f"SELECT {columns} FROM ({select.replace('$study', quoted(study))}) ORDER BY {order}, {name}"
    )
    if not found.num_rows:
        raise UserError(f"claims need a study that has run, got {study!r}. Run `headstream run {study}` first.")
    return found


def banner_of(warehouse: Path, study: str) -> str | None:
    """What to know before any claim of a study, if none of its models learned."""
    found = run_sql(warehouse, f"SELECT banner FROM claims_in_short WHERE study = {quoted(study)}")
    return found["banner"][0].as_py() if found.num_rows else None


def _keep_cells_of(connection: duckdb.DuckDBPyConnection, study: str) -> None:
    """Work out the study's own cells once, for claims to see in place of the view of all."""
    connection.execute("DROP VIEW IF EXISTS temp.cells")
    connection.execute("CREATE OR REPLACE TEMP TABLE own_cells AS FROM cells WHERE study = ?", [study])


def _show_cells(connection: duckdb.DuckDBPyConnection, condition: str = "true") -> None:
    connection.execute(f"CREATE OR REPLACE TEMP VIEW cells AS FROM own_cells WHERE {condition}")


def _lack(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> str | None:
    _show_cells(connection)
    columns = _columns(connection, claim, study)  # so that its errors come before anything is trained
    _values(connection, claim, study, columns)
    needed = _needed_cells(connection, claim, study)
    if not needed:
        return claim.lacks
    if claim.rule is None or claim.rule.every:
        return None
    most = max(len({seed for _, seed, _ in same}) for _, same in groupby(sorted(needed), key=lambda cell: cell[0]))
    if most < claim.seeds:
        return f"{claim.seeds} seeds or more"
    to_hold = _models_to_hold(claim.rule, claim) if columns["value"] == "BOOLEAN" else claim.seeds
    return None if most >= to_hold else f"{to_hold} seeds or more, to hold"


def _models_to_hold(rule: Rule, claim: Claim) -> int:
    """How many models that all agree a share of models needs to hold."""
    for n in range(claim.seeds, MOST_SEEDS):
        all_do, none_does = (share_interval(np.full(n, share), np.ones(n)) for share in (1.0, 0.0))
        found = difference_of_shares(all_do, none_does) if claim.control else all_do
        if rule.verdict(found.low, found.high) == "holds":
            return n
    return MOST_SEEDS


def _needed_cells(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> list[tuple[str, int, bool]]:
    """The cells that are as the claim needs them: place, seed, learned."""
    needs = claim.needs.replace("$study", quoted(study))
    try:
        select = (
            f"SELECT drop_axes(cell, 'seed'), seed, coalesce(learned, false) FROM cells WHERE ({needs}) ORDER BY ALL"
        )
        return connection.execute(select).fetchall()
    except duckdb.Error as error:
        must, do = "needs must be a condition on cells", "`headstream sql` lists their columns."
        raise claim_error(claim.claim_id, must, first_line(error), do) from error


def _verdict(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> tuple[Row, list[Row]]:
    _show_cells(connection)
    needed = _needed_cells(connection, claim, study)
    if not needed:
        return {"verdict": "not tested", "reason": f"lacks {claim.lacks}"}, []
    columns = _columns(connection, claim, study)
    if claim.rule and claim.rule.every:
        return _of_the_worst(claim, claim.rule, _values(connection, claim, study, columns)), []
    every_value = _values(connection, claim, study, columns)
    values = every_value
    if not all(learned for *_, learned in needed):
        _show_cells(connection, "learned")
        values = _values(connection, claim, study, columns)
    parts = [
        _of_configuration(claim, place, values, every_value) for place in dict.fromkeys(v.place for v in every_value)
    ]
    names = named([part["place"] for part in parts])
    overall = _over_configurations(claim, parts, names)
    return overall, [{"configuration": names[part.pop("place")]} | part for part in parts]


def _of_the_worst(claim: Claim, rule: Rule, values: Sequence[_Value]) -> Row:
    if not values:
        return {"verdict": "not tested", "reason": claim.empty or _nothing_in(claim)}
    worst = max(value.value for value in values)
    verdict = rule.verdict(worst, worst)
    if claim.kind == "self-check":
        verdict = verdict.replace("holds", "passes")
    return {"verdict": verdict, "estimate": worst, "n": len(values), "over": f"{rule.every}s"}


def _of_configuration(claim: Claim, place: str, learned: Iterable[_Value], every: Iterable[_Value]) -> Row:
    """A configuration's row, with its place for its name."""
    own = [value for value in learned if value.place == place]
    n, n_undertrained = len(own), sum(value.place == place for value in every) - len(own)
    row: Row = {"place": place, "n": n, "n_undertrained": n_undertrained, "points": [value.value for value in own]}
    if not own:
        return row | {"verdict": "not tested", "reason": "undertrained"}
    values, counted = (np.array([getattr(value, name) for value in own], float) for name in ("value", "counted"))
    controls = np.array([value.control for value in own], float) if claim.control else None
    more = values if controls is None or claim.rule is None else values - controls
    row["estimate"] = float(more.mean())
    row["control"] = None if controls is None else float(controls.mean())
    if claim.rule is None:
        return row | {"verdict": "described"}
    if n < claim.seeds:
        return row | {"verdict": "undecided", "reason": _seeds_needed(claim, claim.rule, counted)}
    found = _with_error_over_text(_difference(claim, values, controls, counted), own, claim.within)
    verdict = claim.rule.verdict(found.low, found.high)
    if verdict != "holds" and controls is not None and _hold(claim, claim.rule, counted, values, controls):
        verdict = AS_RANDOM
    reason = _why_undecided(claim, claim.rule, n, counted) if verdict == "undecided" else None
    ends = {"estimate": found.estimate, "ci_low": found.low, "ci_high": found.high}
    return row | ends | {"verdict": verdict, "reason": reason}


def _seeds_needed(claim: Claim, rule: Rule, counted: Values) -> str:
    needed = f"needs {claim.seeds} seeds"
    return f"{needed}, and {_models_to_hold(rule, claim)} to hold" if _is_of_models(claim, counted) else needed


def _why_undecided(claim: Claim, rule: Rule, n: int, counted: Values) -> str:
    if _is_of_models(claim, counted) and n < (to_hold := _models_to_hold(rule, claim)):
        return f"{n} seeds can't show it of a share of models, even if all agree; {to_hold} could"
    return "the interval holds the bar"


def _is_of_models(claim: Claim, counted: Values) -> bool:
    return claim.quantity == "share" and bool((counted == 1).all())


def _with_error_over_text(found: Interval, own: Sequence[_Value], within: Range) -> Interval:
    """An interval over seeds, as wide as it is if the text that they share might have been another one.

    Other seeds don't make up for it: the two errors are independent, and add as squares.
    """
    below = [value.value - value.low for value in own if value.low is not None]
    above = [value.high - value.value for value in own if value.high is not None]
    if not below or not above:
        return found
    low = found.estimate - hypot(found.estimate - found.low, mean(below))
    high = found.estimate + hypot(found.high - found.estimate, mean(above))
    return Interval(found.estimate, max(low, within[0]), min(high, within[1]))


def _interval(claim: Claim, values: Values, counted: Values) -> Interval:
    if claim.quantity == "mean":
        return mean_interval(values, claim.within)
    return OF_COUNTED[claim.quantity](values, counted)


def _difference(claim: Claim, values: Values, controls: Values | None, counted: Values) -> Interval:
    """What decides: the values or, with a control, by how much they exceed it."""
    if controls is None:
        return _interval(claim, values, counted)
    if claim.quantity == "share":
        return difference_of_shares(share_interval(values, counted), share_interval(controls, counted))
    return mean_interval(values - controls)


def _hold(claim: Claim, rule: Rule, counted: Values, *measured: Values) -> bool:
    """Whether each of these, taken by itself, meets the rule."""
    intervals = (_interval(claim, values, counted) for values in measured)
    return all(rule.verdict(found.low, found.high) == "holds" for found in intervals)


def _over_configurations(claim: Claim, parts: Sequence[Row], names: Mapping[str, str]) -> Row:
    """The claim's own row: what its configurations agree on, or what they depend on."""
    looked_at = [part for part in parts if part["n"]]
    undertrained = [names[part["place"]] for part in parts if part["n_undertrained"]]
    named_so = f"undertrained: {', '.join(undertrained)}" if undertrained else None
    if not looked_at:
        return {"verdict": "not tested", "reason": named_so or claim.empty or _nothing_in(claim)}
    estimates = [part["estimate"] for part in looked_at]
    controls = [part["control"] for part in looked_at if part["control"] is not None]
    row = {
        "n": min(part["n"] for part in looked_at),
        "over": "seeds",
        "n_configurations": len(looked_at),
        "estimate_low": min(estimates),
        "estimate_high": max(estimates),
        "control": median(controls) if controls else None,
    }
    if claim.rule is None:
        row["estimate"] = median(estimates)
    elif len(looked_at) == 1:
        row |= {name: looked_at[0].get(name) for name in ("estimate", "ci_low", "ci_high")}
    verdict, reason = _agreement(looked_at)
    return row | {"verdict": verdict, "reason": "; ".join(filter(None, [reason, named_so])) or None}


def _agreement(parts: Sequence[Row]) -> tuple[str, str | None]:
    """The verdict that configurations come to, and why."""
    decided = [part for part in parts if part["verdict"] != "undecided"]
    verdicts = {part["verdict"] for part in decided}
    if len(verdicts) > 1:
        return "depends", depends_on({part["place"]: part["verdict"] for part in parts})
    if verdicts and 2 * len(decided) > len(parts):
        (verdict,) = verdicts
        return verdict, None if len(decided) == len(parts) else f"in {len(decided)} of {len(parts)} configurations"
    reasons = sorted({part["reason"] for part in parts if part["reason"]})
    if verdicts:
        reasons.append(f"{verdicts.pop()} in {len(decided)} of {len(parts)} configurations")
    return "undecided", "; ".join(reasons)


def _columns(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> dict[str, str]:
    """Names and types of what a claim's SELECT gives.

    Raises:
        UserError: it can't be run, or lacks a column.
    """
    try:
        found = connection.sql(claim.select.replace("$study", quoted(study)))
    except duckdb.Error as error:
        raise _wrong_select(claim, error) from error
    columns = {name: str(of_type) for name, of_type in zip(found.columns, found.types, strict=True)}
    needed = ["value"]
    if not (claim.rule and claim.rule.every):
        needed += ["seed", "configuration"] if "configuration" in columns else ["model_id"]
        needed += ["control"] if claim.control else []
        needed += ["counted"] if claim.quantity in OF_COUNTED and columns.get("value") != "BOOLEAN" else []
    if absent := [name for name in needed if name not in columns]:
        must = f"its SELECT must give the column {absent[0]}"
        raise claim_error(claim.claim_id, must, ", ".join(columns), "Name it so.")
    return columns


def _values(
    connection: duckdb.DuckDBPyConnection, claim: Claim, study: str, columns: Mapping[str, str]
) -> list[_Value]:
    """What a claim's SELECT gives: a value a configuration and seed, those of one seed as their mean.

    Raises:
        UserError: it gives no numbers.
    """
    given = f"({claim.select.replace('$study', quoted(study))}\n) AS given"
    if claim.rule and claim.rule.every:
        query = f"SELECT '', 0, value::DOUBLE, NULL, 1 FROM {given} WHERE value IS NOT NULL"
    else:
        of_models = "configuration" not in columns
        place = "drop_axes(own_cells.cell, 'seed'), own_cells.seed" if of_models else "configuration, seed"
        source = f"{given} JOIN own_cells USING (model_id)" if of_models else given
        control, kept = ("control", " AND control IS NOT NULL") if claim.control else ("NULL", "")
        counted = "counted" if "counted" in columns else "1"
        ends = ("low", "high") if "low" in columns else ("NULL", "NULL")
        means = ", ".join(f"avg({column}::DOUBLE)" for column in ("value", control, counted, *ends))
        query = f"SELECT {place}, {means} FROM {source} WHERE value IS NOT NULL{kept} GROUP BY ALL ORDER BY ALL"
    try:
        rows = [_Value(*row) for row in connection.execute(query).fetchall()]
    except duckdb.Error as error:
        raise _wrong_select(claim, error) from error
    if any(isnan(number) for row in rows for number in (row.value, row.control or 0.0)):
        do = "Give NULL where there is no value."
        raise claim_error(claim.claim_id, "values must be numbers", f"NaN for {study}", do)
    return rows


def _wrong_select(claim: Claim, error: duckdb.Error) -> UserError:
    must, do = "its SELECT must run and give numbers or booleans", "`headstream sql` lists the tables."
    return claim_error(claim.claim_id, must, first_line(error), do)


def _nothing_in(claim: Claim) -> str:
    """Says that what the SELECT reads, besides the models, holds no value."""
    inner = {"cells", "models", *re.findall(r"(\w+) AS \(", claim.select)}
    read = dict.fromkeys(re.findall(r"\b(?:FROM|JOIN) (\w+)", claim.select))
    return f"no values in {', '.join(name for name in read if name not in inner) or 'cells'}"
