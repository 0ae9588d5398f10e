"""Claims of reports/claims decided on a study: findings with a verdict, descriptions, self-checks."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import duckdb
import pyarrow as pa

from headstream.tasks.errors import UserError
from headstream.tasks.results.claim_files import KINDS, MODELS, Claim, read_claims
from headstream.tasks.results.claim_stages import stages_left_out
from headstream.tasks.results.claim_values import (
    columns_of,
    keep_cells,
    keep_cells_of,
    kinds_of_values,
    needed_cells,
    seed_values,
    show_cells,
)
from headstream.tasks.results.claim_verdicts import (
    BEYOND_SEEDS,
    Row,
    models_to_hold,
    of_configuration,
    of_the_worst,
    over_configurations,
)
from headstream.tasks.results.configurations import named
from headstream.tasks.results.kept_rows import insert_in_order
from headstream.tasks.results.sql import run_sql
from headstream.tasks.results.tables import quoted, table_schema

FALSE_DISCOVERIES = 0.05  # share of a study's decided findings that may be false, on average

_LISTED = """
    SELECT kind, verdict, claim_id AS claim, finding
    FROM claim_findings
    WHERE study = $study AND verdict <> 'passes'
    UNION ALL
    SELECT 'self-check', 'passes', 'self-checks', self_checks
    FROM claims_in_short
    WHERE study = $study AND self_checks IS NOT NULL
"""


def insert_claims(connection: duckdb.DuckDBPyConnection, kept: str = "main") -> None:
    """Fill `claims` and `claim_configurations`, empty in the connection's current database, from its other tables.

    Studies whose claims are in the database `kept` are not decided again.

    Raises:
        UserError: a claim's file is wrong.
    """
    connection.execute("SET threads = 1")  # sums of floats depend on the order in which threads add up
    claims = read_claims()
    undecided = f"SELECT study FROM studies WHERE study NOT IN (SELECT study FROM {kept}.claims) ORDER BY study"
    studies = [study for (study,) in connection.execute(undecided).fetchall()]
    decided = decide(connection, claims, *studies)
    rows = {
        "claims": [row for row, _ in decided],
        "claim_configurations": list(chain.from_iterable(parts for _, parts in decided)),
    }
    for name, of_table in rows.items():
        connection.register("decided", pa.Table.from_pylist(of_table, schema=table_schema(name)))
        insert_in_order(connection, name, "FROM decided", f"FROM {kept}.{name}")
        connection.unregister("decided")


def decide(
    connection: duckdb.DuckDBPyConnection, claims: Sequence[Claim], *studies: str
) -> list[tuple[Row, list[Row]]]:
    """For each study and claim the row of `claims` that the other tables give, and those of `claim_configurations`.

    Raises:
        UserError: a claim's file is wrong.
    """
    decided = []
    keep_cells(connection)
    for study in studies:
        of_study = []
        for claim in _by_models(connection, claims, study):
            found, parts = _verdict(connection, claim, study)
            name = {"study": study, "claim_id": claim.claim_id}
            of_study.append((name | _about(claim) | found, [name | part for part in parts]))
        of_study.sort(key=lambda decided: decided[0]["claim_id"])
        _tell_survivors([row for row, _ in of_study])
        decided += of_study
    return decided


def _tell_survivors(claims: Sequence[Row]) -> None:
    """Add to the findings of a study which survive a false-discovery rate of 5 % among all that were tested.

    Source: Benjamini & Hochberg 1995.
    """
    n_tested = sum(row["kind"] == "finding" and row["verdict"] != "not tested" for row in claims)
    ranked = sorted((row for row in claims if row.get("chance") is not None), key=lambda row: row["chance"])
    passing = [rank for rank, row in enumerate(ranked, 1) if row["chance"] <= FALSE_DISCOVERIES * rank / n_tested]
    for rank, row in enumerate(ranked, 1):
        row["survives"] = rank <= max(passing, default=0)


def lacking_for_claims(
    connection: duckdb.DuckDBPyConnection, claims: Sequence[Claim], study: str
) -> dict[str, str | None]:
    """For each claim what a study's models lack to decide it, before anything is measured; None if they lack nothing.

    Raises:
        UserError: a claim's file is wrong.
    """
    keep_cells(connection)
    lacking = {claim.claim_id: _lack(connection, claim, study) for claim in _by_models(connection, claims, study)}
    return dict(sorted(lacking.items()))


def _by_models(connection: duckdb.DuckDBPyConnection, claims: Sequence[Claim], study: str) -> Iterator[Claim]:
    """The claims, while `cells` are those that each looks at."""
    for models in MODELS:
        keep_cells_of(connection, study, models)
        yield from (claim for claim in claims if claim.models == models)


def claims_of(warehouse: Path, study: str, in_words: bool) -> pa.Table:
    """Every claim with what a study says of it: rows of `claims`, or a few words on each.

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
    """The warning to read before any claim of a study, if none of its models learned."""
    found = run_sql(warehouse, f"SELECT banner FROM claims_in_short WHERE study = {quoted(study)}")
    return found["banner"][0].as_py() if found.num_rows else None


def _about(claim: Claim) -> Row:
    """The columns of `claims` that a claim's file gives."""
    return {
        "kind": claim.kind,
        "rule": claim.rule.text if claim.rule else None,
        "source": claim.source.words,
        "source_url": claim.source.url,
        "texts": claim.source.texts,
        "statement": claim.statement,
        "unit": claim.unit,
        "evidence": claim.evidence,
        "changed": claim.changed,
    }


def _lack(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> str | None:
    columns = columns_of(connection, claim, study)  # so that its errors come before anything is trained
    seed_values(connection, claim, study, columns)
    needed = needed_cells(connection, claim, study)
    if not needed:
        return claim.lacks
    if left_out := stages_left_out(connection, claim, study):
        return left_out
    if claim.rule is None or claim.rule.every:
        return None
    most = _most_seeds(needed)
    if most < claim.seeds:
        return _seeds_lacking(connection, claim)
    to_hold = models_to_hold(claim.rule, claim) if columns["value"] == "BOOLEAN" else claim.seeds
    return None if most >= to_hold else f"{to_hold} seeds or more, to hold"


def _most_seeds(needed: Sequence[tuple[str, int, bool | None]]) -> int:
    """Of the configurations that a claim needs, the seeds of that which has most."""
    seeds = defaultdict[str, set[int]](set)
    for place, seed, _ in needed:
        seeds[place].add(seed)
    return max(map(len, seeds.values()))


def _most_seeds_to_come(connection: duckdb.DuckDBPyConnection, study: str) -> int | None:
    """The most seeds of a kind of model, of a study that trains until claims are decided; None of any other."""
    query = "SELECT (config -> '$.until_decided.at_most')::INTEGER FROM studies WHERE study = ?"
    found = connection.execute(query, [study]).fetchall()
    return found[0][0] if found else None


def _seeds_lacking(connection: duckdb.DuckDBPyConnection, claim: Claim) -> str:
    seeds = f"{claim.seeds} seeds or more"
    return f"models trained here, in {seeds}" if _are_imported(connection) else seeds


def _are_imported(connection: duckdb.DuckDBPyConnection) -> bool:
    """Tell if all models of the study came as they are, so that there are no other seeds of any."""
    ((imported,),) = connection.execute("SELECT bool_and(imported_as IS NOT NULL) FROM own_cells").fetchall()
    return bool(imported)


def _verdict(connection: duckdb.DuckDBPyConnection, claim: Claim, study: str) -> tuple[Row, list[Row]]:
    needed = needed_cells(connection, claim, study)
    if not needed:
        return {"verdict": "not tested", "reason": f"lacks {claim.lacks}"}, []
    columns = columns_of(connection, claim, study)
    values = every_value = seed_values(connection, claim, study, columns)
    if not values and (left_out := stages_left_out(connection, claim, study, has_values=False)):
        return {"verdict": "not tested", "reason": f"lacks {left_out}"}, []
    if claim.rule and claim.rule.every:
        return of_the_worst(claim, claim.rule, values), []
    if not all(learned for *_, learned in needed):
        show_cells(connection, "learned")
        values = seed_values(connection, claim, study, columns)
        show_cells(connection)
    if claim.rule and _most_seeds(needed) < claim.seeds and _are_imported(connection):
        return {"verdict": "not tested", "reason": f"lacks {_seeds_lacking(connection, claim)}"}, []
    places = list(dict.fromkeys(value.place for value in every_value))
    at_most = _most_seeds_to_come(connection, study)
    parts = [of_configuration(claim, place, values, every_value, at_most) for place in places]
    names = named(places)
    overall = over_configurations(claim, parts, names)
    for part in parts:
        part["configuration"] = names[part["place"]]
    open_ones = [part for part in parts if part["verdict"] == "undecided" and part["reason"] != BEYOND_SEEDS]
    if at_most and open_ones:
        kinds = kinds_of_values(connection, claim, study, columns)
        for part in open_ones:
            part["kinds"] = kinds[part["place"]]
    return overall, parts
