"""The command `headstream run`: a study with live progress."""

import os
from typing import TextIO

from flows.prefect_server import reached_server  # first: it tells Prefect to be quiet
from flows.progress_display import shown_progress
from flows.study import run_study
from flows.study_progress import StudyProgress
from tasks import steps
from tasks.machines.stopping import LastWords
from tasks.planning import plan_artifacts, require_space
from tasks.study.schema import Study


@steps.store_in_use()
def run_with_progress(study: Study, terminal: TextIO, words: LastWords) -> list[str]:
    """Run a study with live progress; its answer and the path of its report, line by line.

    Prefect's server starts once it is clear that there is text to train on.

    Raises:
        UserError, WorkError: those of the study's flow.
    """
    planned = plan_artifacts(study)
    require_space(planned)
    steps.require_device(study)
    progress = StudyProgress(study.name, planned, study.resources.jobs or os.cpu_count() or 1)
    words.how_far = progress.how_far
    with shown_progress(progress, terminal):
        steps.make_text(study)
        with reached_server():
            report = run_study(study)
    return [*(f"- {line}" for line in steps.answer_of(study.name)), f"Report: {report}"]
