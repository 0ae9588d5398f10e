"""Running a study from the command line."""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from prefect.task_runners import ThreadPoolTaskRunner
from rich.console import Console

from flows.display import shown_progress
from flows.study import run_study
from flows.study_schema import Study
from tasks import steps


def run_and_show(study: Study, jobs: int | None, server: Future[None]) -> None:
    """Run a study with live progress, then print its answer and where its report is."""
    runner: Any = ThreadPoolTaskRunner(max_workers=jobs or os.cpu_count() or 1)
    with shown_progress(Console(stderr=True)), ThreadPoolExecutor(1) as meanwhile:
        # The server takes seconds to start; the flow then finds the text there, or waits until it is.
        meanwhile.submit(steps.make_text, study.corpus, study.tokenizer)
        server.result()
        report = run_study.with_options(task_runner=runner)(study)
    for line in steps.answer_of(study.name):
        print(f"- {line}")
    print(f"Report: {report}")


def report_again(study: Study) -> Path:
    """Index the store and write the study's report from it."""
    return steps.report_again(study.name)
