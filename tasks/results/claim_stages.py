"""The analyses without which a claim has no values: those that fill the tables which its SELECT reads."""

import json
import re
from collections.abc import Mapping
from typing import Any

import duckdb

from headstream.tasks.results.claim_files import Claim
from headstream.tasks.results.tables import tables
from headstream.tasks.results.views import views
from headstream.tasks.study.analyses import ANALYSES


def stages_left_out(
    connection: duckdb.DuckDBPyConnection, claim: Claim, study: str, *, has_values: bool = True
) -> str | None:
    """The stages that a claim lacks in a study, like `the stage pruning`; None if it lacks none.

    Of a table that several stages fill, one is enough, unless it is known to have no values.
    """
    read = stages_read(connection, claim)
    missing = [{own for own in stages if not _has(connection, study, own)} for stages in read]
    whole = [own for own, stages in zip(missing, read, strict=True) if own == stages]
    named = [" or ".join(sorted(stages)) for stages in whole or ([] if has_values else list(filter(None, missing)))]
    return f"the {'stage' if len(named) == 1 else 'stages'} {' and '.join(named)}" if named else None


def _has(connection: duckdb.DuckDBPyConnection, study: str, stage: str) -> bool:
    (found,) = connection.execute("SELECT measures(?, ?)", [study, stage]).fetchall()[0]
    return bool(found)


def stages_read(connection: duckdb.DuckDBPyConnection, claim: Claim) -> list[frozenset[str]]:
    """For each table that a claim can't do without, the analyses that fill it, of which one is enough.

    What a LEFT JOIN adds, it can do without, unless its header names the stage. A finding looks at models that learned,
    which their losses tell.
    """
    read = _tables_read(connection, claim.select)
    if claim.kind == "finding" and re.search(r"\bcells\b", claim.select):
        read |= {"evaluations"}
    writers = [frozenset(name for name, stage in ANALYSES.items() if table in stage.writes) for table in sorted(read)]
    return list(dict.fromkeys(filter(None, [*writers, *(frozenset([stage]) for stage in claim.stages)])))


def _tables_read(connection: duckdb.DuckDBPyConnection, select: str) -> set[str]:
    """The tables that a SELECT and the views that it asks can't do without."""
    ((parsed,),) = connection.execute("SELECT json_serialize_sql(?)", [select]).fetchall()
    asked = _asked_by(json.loads(parsed)["statements"], {})
    return asked & {*tables()} | set().union(*(_tables_of_view(connection, name) for name in asked))


def _asked_by(node: Any, named: Mapping[str, set[str]]) -> set[str]:
    """The tables and views without which a parsed query has no rows; `named` are those of queries that it may name."""
    if isinstance(node, list):
        return set().union(*(_asked_by(part, named) for part in node))
    if not isinstance(node, dict):
        return set()
    if node.get("type") == "BASE_TABLE":
        return named.get(node["table_name"], {node["table_name"]})
    parts, known = dict(node), dict(named)
    for entry in parts.pop("cte_map", {"map": []})["map"]:
        known[entry["key"]] = _asked_by(entry["value"], known)
    if node.get("join_type") == "LEFT":
        del parts["right"]
    return _asked_by(list(parts.values()), known)


def _tables_of_view(connection: duckdb.DuckDBPyConnection, name: str) -> frozenset[str]:
    if name not in _tables_of_views:
        select = next((view.select for view in views() if view.name == name), None)
        _tables_of_views[name] = frozenset(_tables_read(connection, select) if select else ())
    return _tables_of_views[name]


_tables_of_views: dict[str, frozenset[str]] = {}  # as far as they were asked for
