"""A study's report: markdown and figures, rendered from the warehouse and nothing else."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tasks.code_version import code_version
from tasks.errors import WorkError
from tasks.places import ROOT
from tasks.store import Artifact, Request
from tasks.study_answer import answer_lines
from tasks.study_results import open_results

RESOURCES = ("reports/templates/*", "reports/queries/*", "reports/claims/*", "data/views/*", "data/schema.sql")


def report_request(record: Artifact) -> Request:
    """Decided by the study's record and everything that turns it into a report."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in RESOURCES for path in ROOT.glob(pattern)):
        digest.update(path.read_bytes())
    code = [code_version("tasks.reporting"), code_version("tasks.claims")]  # verdicts are the warehouse's
    return Request("report", " ".join(code), {"resources": digest.hexdigest()}, {"study": record}, {})


def render_report(
    warehouse: Path, study: str, folder: Path, report: Callable[[float], None] = lambda fraction: None
) -> dict[str, Any]:
    """Write `report.md` and `figures/` into the folder; the same warehouse gives the same bytes.

    `report` hears the fraction done after each figure. Returns facts, among them the lines of the answer.

    Raises:
        RequestError: the study isn't in the warehouse.
    """
    from tasks.report_page import write_page  # matplotlib takes a second to import, and few processes need it

    with open_results(warehouse, study) as results:
        answer = answer_lines(results)
        write_page(results, answer, folder, report)
    return {"study": study, "answer": answer}


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
