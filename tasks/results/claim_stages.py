"""The analyses without which a claim has no values: those that fill the tables which its SELECT reads."""

import re
from functools import cache

import duckdb

from headstream.tasks.results.claim_files import Claim
from headstream.tasks.results.tables import tables
from headstream.tasks.results.views import views
from headstream.tasks.study.analyses import ANALYSES

_READ = re.compile(r"(LEFT )?\b(?:FROM|JOIN) (\w+)")


def stages_left_out(
    connection: duckdb.DuckDBPyConnection, claim: Claim, study: str, *, has_values: bool = True
) -> str | None:
    """The stages that a claim lacks in a study, like `the stage pruning`; None if it lacks none.

    Of a table that several stages fill, one is enough, unless it is known to have no values.
    """
    read = stages_read(claim)
    missing = [{own for own in stages if not _has(connection, study, own)} for stages in read]
    whole = [own for own, stages in zip(missing, read, strict=True) if own == stages]
    named = [" or ".join(sorted(stages)) for stages in whole or ([] if has_values else list(filter(None, missing)))]
    return f"the {'stage' if len(named) == 1 else 'stages'} {' and '.join(named)}" if named else None


def _has(connection: duckdb.DuckDBPyConnection, study: str, stage: str) -> bool:
    (found,) = connection.execute("SELECT measures(?, ?)", [study, stage]).fetchall()[0]
    return bool(found)


def stages_read(claim: Claim) -> list[frozenset[str]]:
    """For each table that a claim can't do without, the analyses that fill it, of which one is enough.

    What a LEFT JOIN adds, it can do without. A finding looks at models that learned, which their losses tell.
    """
    read = _tables_read(claim.select)
    if claim.kind == "finding" and re.search(r"\bcells\b", claim.select):
        read |= {"evaluations"}
    writers = (frozenset(name for name, stage in ANALYSES.items() if table in stage.writes) for table in sorted(read))
    return list(dict.fromkeys(filter(None, writers)))


def _tables_read(select: str) -> set[str]:
    """The tables that a SELECT and the views that it asks can't do without."""
    found: set[str] = set()
    for optional, name in _READ.findall(select):
        if not optional and name != "cells":
            found |= {name} if name in tables() else _tables_of_view(name)
    return found


@cache
def _tables_of_view(name: str) -> frozenset[str]:
    selects = {view.name: view.select for view in views()}
    return frozenset(_tables_read(selects[name])) if name in selects else frozenset()
