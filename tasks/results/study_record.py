"""The record of a study: which models it has, how each turned out, and every artifact that belongs to it."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headstream.tasks.results.tables import write_table
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.provenance import git_commit, package_version


@dataclass(frozen=True)
class ModelOutcome:
    """The outcome of one cell of the grid: its artifacts, or why some are missing."""

    cell: str
    model_id: str
    artifacts: Sequence[Artifact]
    failure: str | None = None
    left_out: str | None = None  # why there is nothing to make


@dataclass(frozen=True)
class RecordedStudy:
    """What a record says of a study itself: its config, and its text as somebody wrote it."""

    name: str
    question: str
    config: Mapping[str, Any]
    written: str | None = None


def write_record(
    folder: Path,
    study: RecordedStudy,
    outcomes: Sequence[ModelOutcome],
    started: float,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> dict[str, Any]:
    """Write the tables `studies` and `study_models`; the run began at `started`, by time.monotonic()."""
    finished_at = datetime.now(UTC)
    row = {
        "study": study.name,
        "question": study.question,
        "config": json.dumps(study.config, indent=1),
        "written": study.written,
        "git_commit": git_commit(),
        "headstream_version": package_version("headstream"),
        "started_at": finished_at - timedelta(seconds=time.monotonic() - started),  # the clock may have been set
        "finished_at": finished_at,
        "n_models": len(outcomes),
        "n_failed": sum(outcome.failure is not None for outcome in outcomes),
    }
    models = [
        {
            "study": study.name,
            "model_id": outcome.model_id,
            "cell": outcome.cell,
            "status": "left out" if outcome.left_out else "failed" if outcome.failure else "trained",
            "failure": outcome.failure or outcome.left_out,
        }
        for outcome in outcomes
    ]
    write_table(folder, "studies", [row])
    write_table(folder, "study_models", models)
    return {"study": study.name}
