"""Running a study from the command line."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console

# Before Prefect is imported: no telemetry (it fails loudly offline); time for its server to start on a busy machine;
# and no log lines between the progress bars, which say the same (Prefect's server keeps them).
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
os.environ.setdefault("PREFECT_LOGGING_EXTRA_LOGGERS", "tasks,flows")

from prefect.task_runners import ThreadPoolTaskRunner

from flows.display import shown_progress
from flows.study import run_study
from flows.study_schema import Study
from tasks import steps


def run_and_show(study: Study, jobs: int | None) -> None:
    """Run a study with live progress, then print its answer and where its report is."""
    runner: Any = ThreadPoolTaskRunner(max_workers=jobs or os.cpu_count() or 1)
    with shown_progress(Console(stderr=True)), ThreadPoolExecutor(1) as meanwhile:
        # Prefect's server takes seconds to start; its flow then finds the text there, or waits until it is.
        meanwhile.submit(steps.make_text, study.corpus, study.tokenizer)
        report = run_study.with_options(task_runner=runner)(study)
    for line in steps.answer_of(study.name):
        print(f"- {line}")
    print(f"Report: {report}")


def report_again(study: Study) -> Path:
    """Index the store and write the study's report from it."""
    return steps.report_again(study.name)
