"""The looks of a study that trains seeds until its claims are decided: the study with as many seeds as it has at each.

After a look, the kinds of model that an undecided finding is of get the seeds of the next one; others train no more.
"""

import json
import re

import pyarrow.parquet as pq

from headstream.tasks import places
from headstream.tasks.results.sql import run_sql
from headstream.tasks.results.tables import quoted
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.storage.latest_records import latest_record
from headstream.tasks.study.schema import Study

_UNDECIDED = """
    SELECT DISTINCT unnest(kinds) AS kind
    FROM claim_configurations
    JOIN claims USING (study, claim_id)
    WHERE study = {study} AND kind = 'finding' AND claim_configurations.verdict = 'undecided'
        AND (len({claims}::VARCHAR[]) = 0 OR claim_id IN {claims})
    ORDER BY kind
"""


def at_its_look(study: Study) -> Study:
    """The study with the seeds that its last run got to; as it is, if it has a list of seeds or hasn't run."""
    record = latest_record(open_store(), study.name) if study.until_decided else None
    if record is None:
        return study
    (written,) = pq.read_table(record.folder / "studies.parquet", columns=["config"])["config"].to_pylist()
    config = json.loads(written)
    if not study.is_recorded_as(config):
        return study
    most = study.until_decided.at_most if study.until_decided else 0
    return study.with_seeds({kind: min(n, most) for kind, n in config["until_decided"]["so_far"].items()})


def next_look(study: Study) -> Study | None:
    """The study with the seeds that its undecided findings take next; None if none is left that more seeds decide.

    What is undecided is read from the warehouse, which must hold the study as it is.
    """
    if study.until_decided is None:
        return None
    found = run_sql(
        places.warehouse_file(), _UNDECIDED.format(study=quoted(study.name), claims=[*study.until_decided.claims])
    )
    undecided = [_settings(kind) for kind in found["kind"].to_pylist()]
    more = {
        kind: seeds
        for kind in study.kinds
        if any(settings <= _settings(kind) for settings in undecided)
        if (seeds := study.until_decided.next_look(kind))
    }
    return study.with_seeds(more) if more else None


def at_the_last_look(study: Study) -> Study:
    """The study with as many seeds as it may take, if nothing is decided before."""
    if study.until_decided is None:
        return study
    return study.with_seeds(dict.fromkeys(study.kinds, study.until_decided.at_most))


def _settings(place: str) -> set[str]:
    """The axes and values of a place, like {`n_layers=2`, `n_heads=4`}."""
    return set(re.findall(r"\w+=(?:\[[^\]]*\]|\S*)", place))
