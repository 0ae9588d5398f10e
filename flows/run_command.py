"""Running a study from the command line."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from rich.console import Console

from flows.progress_display import shown_progress
from flows.study import run_study
from tasks import steps
from tasks.planning import plan_steps, require_space
from tasks.study.schema import Study


@steps.store_in_use()
def run_and_show(study: Study, server: Future[None]) -> None:
    """Run a study with live progress, then print its answer and where its report is.

    Raises:
        UserError, WorkError: as the study's flow raises them.
    """
    require_space(plan_steps(study))
    with shown_progress(Console(stderr=True)), ThreadPoolExecutor(1) as meanwhile:
        # The server takes seconds to start; the flow then finds the text there, or waits until it is.
        meanwhile.submit(steps.make_text, study.corpus, study.tokenizer)
        server.result()
        report = run_study(study)
    for line in steps.answer_of(study.name):
        print(f"- {line}")
    print(f"Report: {report}")


def report_again(study: Study) -> Path:
    """Index the store and write the study's report from it."""
    return steps.report_again(study.name)
