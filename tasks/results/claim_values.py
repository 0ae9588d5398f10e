"""Values that a claim's SELECT gives of a study, one for each configuration and seed, and the models that it needs."""

import re
from collections.abc import Mapping
from math import isnan
from typing import NamedTuple

import duckdb

from headstream.tasks.errors import UserError
from headstream.tasks.results.claim_files import Claim, claim_error, first_line
from headstream.tasks.results.intervals import OF_COUNTED
from headstream.tasks.results.tables import quoted


class Value(NamedTuple):
    """The value that one seed of a configuration gives."""

    place: str  # of the grid, without its seed
    seed: int
    value: float
    control: float | None
    counted: float
    low: float | None = None  # ends of the value's own 95 % interval, over what all seeds share: a text, or a clock
    high: float | None = None


def keep_cells(connection: duckdb.DuckDBPyConnection) -> None:
    """Work out the cells of all studies once: every claim on every study asks for some of them."""
    connection.execute("DROP VIEW IF EXISTS temp.cells")
    connection.execute("CREATE OR REPLACE TEMP TABLE all_cells AS FROM cells")


def keep_cells_of(connection: duckdb.DuckDBPyConnection, study: str, models: str = "plain") -> None:
    """Take a study's own cells out of those that are kept, and have `cells`, which is the view of all, be these.

    Models with interventions in training, or with smeared keys, are others: only claims about them look at those.
    """
    which = "" if models == "all" else "AND interventions IS NULL AND NOT coalesce(key_smearing, false)"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE own_cells AS FROM all_cells WHERE study = ? {which}", [study])
    show_cells(connection)


def show_cells(connection: duckdb.DuckDBPyConnection, condition: str = "true") -> None:
    """Have `cells` be the study's own of which a condition is true."""
    connection.execute(f"CREATE OR REPLACE TEMP VIEW cells AS FROM own_cells WHERE {condition}")


def needed_cells(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> list[tuple[str, int, bool]]:
    """The cells that are as the claim needs them: place, seed, learned.

    Raises:
        UserError: `needs` is no condition on cells.
    """
    needs = claim.needs.replace("$study", quoted(study))
    try:
        select = (
            f"SELECT drop_axes(cell, 'seed'), seed, coalesce(learned, false) FROM cells WHERE ({needs}) ORDER BY ALL"
        )
        return connection.execute(select).fetchall()
    except duckdb.Error as error:
        must, do = "needs must be a condition on cells", "`headstream sql` lists their columns."
        raise claim_error(claim.claim_id, must, first_line(error), do) from error


def columns_of(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> dict[str, str]:
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
    absent = [name for name in needed if name not in columns]
    if absent:
        must = f"its SELECT must give the column {absent[0]}"
        raise claim_error(claim.claim_id, must, ", ".join(columns), "Name it so.")
    return columns


def seed_values(
    connection: duckdb.DuckDBPyConnection, claim: Claim, study: str, columns: Mapping[str, str]
) -> list[Value]:
    """The values that a claim's SELECT gives, one a configuration and seed: those of one seed as their mean.

    Raises:
        UserError: it gives no numbers.
    """
    given = f"({claim.select.replace('$study', quoted(study))}\n) AS given"
    if claim.rule and claim.rule.every:
        own_ends = "low::DOUBLE, high::DOUBLE" if "low" in columns else "NULL, NULL"
        query = f"SELECT '', 0, value::DOUBLE, NULL, 1, {own_ends} FROM {given} WHERE value IS NOT NULL"
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
        rows = [Value(*row) for row in connection.execute(query).fetchall()]
    except duckdb.Error as error:
        raise _wrong_select(claim, error) from error
    if any(isnan(row.value) or isnan(row.control or 0.0) for row in rows):
        do = "Give NULL where there is no value."
        raise claim_error(claim.claim_id, "values must be numbers", f"NaN for {study}", do)
    return rows


def kinds_of_values(
    connection: duckdb.DuckDBPyConnection, claim: Claim, study: str, columns: Mapping[str, str]
) -> dict[str, list[str]]:
    """For each configuration the places of the kinds of model that its values are of: without these, they differ.

    Of a comparison, these are all that it compares.
    """
    kinds = connection.execute("SELECT DISTINCT drop_axes(cell, 'seed') FROM own_cells ORDER BY ALL").fetchall()
    if "configuration" not in columns:
        return {kind: [kind] for (kind,) in kinds}
    whole = _by_place(seed_values(connection, claim, study, columns))
    of_place: dict[str, list[str]] = {place: [] for place in whole}
    for (kind,) in kinds:
        show_cells(connection, f"drop_axes(cell, 'seed') <> {quoted(kind)}")
        without = _by_place(seed_values(connection, claim, study, columns))
        for place, values in whole.items():
            if without.get(place) != values:
                of_place[place].append(kind)
    show_cells(connection)
    return of_place


def _by_place(values: list[Value]) -> dict[str, list[Value]]:
    found: dict[str, list[Value]] = {}
    for value in values:
        found.setdefault(value.place, []).append(value)
    return found


def _wrong_select(claim: Claim, error: duckdb.Error) -> UserError:
    must, do = "its SELECT must run and give numbers or booleans", "`headstream sql` lists the tables."
    return claim_error(claim.claim_id, must, first_line(error), do)


def nothing_in(claim: Claim) -> str:
    """Says that what the SELECT reads, besides the models, holds no value."""
    inner = {"cells", "models", *re.findall(r"(\w+) AS \(", claim.select)}
    read = dict.fromkeys(re.findall(r"\b(?:FROM|JOIN) (\w+)", claim.select))
    tables = [name for name in read if name not in inner] or ["cells"]
    return f"no values in the {'tables' if len(tables) > 1 else 'table'} {', '.join(tables)}"
