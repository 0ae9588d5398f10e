"""Reports as people find them: copied out of the store, and held against what the run before found."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headstream.tasks.errors import WorkError
from headstream.tasks.files.whole_files import written_whole
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.store import Store


def previous_summary(store: Store, record: Artifact) -> Mapping[str, Any] | None:
    """What the run before the record's found, as its report kept it; None if there was none."""
    superseded, key = record.manifest.config.get("supersedes"), record.manifest.key
    reports = sorted(store.artifacts("report"), key=lambda report: report.manifest.created, reverse=True)
    for report in reports:
        if superseded and report.manifest.inputs["study"].key == superseded:
            summary: Mapping[str, Any] | None = report.manifest.facts.get("summary")
            return summary
    # That report may be gone: an earlier report of this very record knew what was in it.
    known = (report.manifest.config.get("previous") for report in reports if report.manifest.inputs["study"].key == key)
    return next((summary for summary in known if summary), None)


def artifact_key(kind: str, study: str) -> str:
    """The key of one of a study's artifacts in Prefect, which takes a-z, 0-9 and - only; no two studies share one.

    `my-study` has `report-my-study`. `my_study` has `report--2--my-study`: the places of each _ come first, and no
    study's name begins with a -.
    """
    places = [str(place) for place, character in enumerate(study) if character == "_"]
    return f"{kind}--{'-'.join(places)}--{study.replace('_', '-')}" if places else f"{kind}-{study}"


def publish_report(artifact: Artifact, folder: Path) -> Path:
    """Copy a report to where people look for it, file by file, and remove figures and queries that it no longer has.

    Raises:
        WorkError: the folder can't be written.
    """
    *others, text = sorted(artifact.manifest.files, key="report.md".__eq__)
    try:
        for name in (*others, text):  # the text last: it never shows a figure that isn't there
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with written_whole(folder / name) as unfinished:
                shutil.copyfile(artifact.folder / name, unfinished)
        for path in (*folder.glob("figures/*.svg"), *folder.glob("queries/*.sql")):
            if str(path.relative_to(folder)) not in others:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise WorkError(
            f"{folder} must be a folder that can be written, got: {error}. Free disk space or correct its permissions."
        ) from error
    return folder / "report.md"
