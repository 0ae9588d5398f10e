"""The artifacts that the warehouse is built from, and the subject of each."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa

from headstream.tasks.results.tables import table_schema
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.latest_records import latest_records
from headstream.tasks.storage.store import Store

log = logging.getLogger(__name__)


def indexed_artifacts(store: Store) -> list[Artifact]:
    """The latest record of each study, and the newest artifact of each stage, part and subject that they name.

    So what older code found about the same model doesn't count a second time.
    """
    records = [record for _, record in sorted(latest_records(store).items())]
    named: dict[str, set[str]] = defaultdict(set)  # keys by stage
    for record in records:
        for reference in record.manifest.inputs.values():
            named[reference.stage].add(reference.key)
    found: list[Artifact] = []
    for stage, keys in sorted(named.items()):
        found += [artifact for artifact in store.artifacts(stage) if artifact.manifest.key in keys]
    n_missing = sum(map(len, named.values())) - len(found)
    if n_missing:
        log.warning("%d artifacts that studies name are not in the store: run those studies again", n_missing)
    found.sort(key=lambda artifact: (artifact.manifest.created, artifact.manifest.key))
    newest = {(artifact.named, subject_of(artifact)): artifact for artifact in found}
    return [artifact for _, artifact in sorted(newest.items())] + records


def subject_of(artifact: Artifact) -> str:
    """The model, corpus or study that an artifact is about, and all its rows with it."""
    facts = artifact.manifest.facts
    names = (facts[name] for name in ("model_id", "corpus_id", "study") if name in facts)
    return next(names, artifact.manifest.key)


def artifact_rows(found: Sequence[Artifact]) -> pa.Table:
    """Rows of the table `artifacts`."""
    columns = {
        "stage": [artifact.manifest.stage for artifact in found],
        "key": [artifact.manifest.key for artifact in found],
        "digest": [artifact.digest for artifact in found],
        "subject": [subject_of(artifact) for artifact in found],
        "created": [datetime.fromisoformat(artifact.manifest.created) for artifact in found],
        "seconds": [artifact.manifest.seconds for artifact in found],
        "bytes": [sum(file.bytes for file in artifact.manifest.files.values()) for artifact in found],
    }
    return pa.Table.from_pydict(columns, schema=table_schema("artifacts"))
