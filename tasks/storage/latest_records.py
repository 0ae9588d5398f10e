"""The record of each study's last run."""

from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.store import Store


def latest_records(store: Store) -> dict[str, Artifact]:
    """The record of each study's last run, by name: the one that no other supersedes, whatever the clock said."""
    records = sorted(store.artifacts("study"), key=lambda record: record.manifest.created)
    superseded = {record.manifest.config.get("supersedes") for record in records}
    return {
        record.manifest.facts["study"]: record  # the later, of two that ran at once
        for record in records
        if record.manifest.key not in superseded
    }


def latest_record(store: Store, study: str) -> Artifact | None:
    """The record of the study's last run."""
    return latest_records(store).get(study)
