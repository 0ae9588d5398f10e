"""A study's report: markdown and figures, rendered from the warehouse and nothing else."""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tasks.errors import WorkError
from tasks.places import ROOT
from tasks.report.answer import answer_lines
from tasks.report.comparison import Summary, summarise
from tasks.results.study_results import open_results
from tasks.storage.artifact import Artifact, Spec
from tasks.storage.code_version import code_version
from tasks.storage.store import Store

RESOURCES = ("reports/templates/*", "reports/queries/*", "reports/claims/*", "data/views/*", "data/schema.sql")
TIMED_FILES = ("report.md",)  # it says when the study ran, and for how long


def report_spec(record: Artifact, previous: Mapping[str, Any] | None = None) -> Spec:
    """Decided by the study's record, what its last run found, and everything that turns it into a report."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in RESOURCES for path in ROOT.glob(pattern)):
        digest.update(path.read_bytes())
    code = [
        code_version("tasks.report.rendering"),
        code_version("tasks.results.claims"),
    ]  # verdicts are the warehouse's
    slice_ = {"resources": digest.hexdigest(), "previous": previous}
    return Spec("report", " ".join(code), slice_, {"study": record}, {})


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


def render_report(
    warehouse: Path,
    study: str,
    folder: Path,
    on_progress: Callable[[float], None] = lambda fraction: None,
    previous: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write `report.md` and `figures/` into the folder; the same warehouse gives the same bytes.

    `previous` is what the study's last run found. `on_progress` hears the fraction done after each figure. Returns
    facts: the lines of the answer, and what this run found.

    Raises:
        UserError: the study isn't in the warehouse.
    """
    from tasks.report.page import write_page  # matplotlib takes a second to import, and few processes need it

    with open_results(warehouse, study) as results:
        answer = answer_lines(results)
        write_page(results, answer, folder, on_progress, Summary.from_json(previous) if previous else None)
        summary = vars(summarise(results))
    return {"study": study, "answer": answer, "summary": summary}


def publish_report(artifact: Artifact, folder: Path) -> Path:
    """Copy a report to where people look for it, file by file, and remove figures that it no longer has.

    Raises:
        WorkError: the folder can't be written.
    """
    figures = [name for name in artifact.manifest.files if name.startswith("figures/")]
    try:
        (folder / "figures").mkdir(parents=True, exist_ok=True)
        for name in (*figures, "report.md"):  # the text last: it never shows a figure that isn't there
            unfinished = folder / f".{os.getpid()}.unfinished"
            shutil.copyfile(artifact.file(name), unfinished)
            os.replace(unfinished, folder / name)
        for path in (folder / "figures").glob("*.svg"):
            if f"figures/{path.name}" not in figures:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise WorkError(
            f"{folder} must be a folder that can be written, got: {error}. Free disk space or correct its permissions."
        ) from error
    return folder / "report.md"
