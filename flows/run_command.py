"""The command `headstream run`: a study with live progress."""

from concurrent.futures import Future, ThreadPoolExecutor

from rich.console import Console

from flows.progress_display import shown_progress
from flows.study import run_study
from tasks import steps
from tasks.planning import plan_artifacts, require_space
from tasks.study.schema import Study


@steps.store_in_use()
def run_with_progress(study: Study, server: Future[None]) -> None:
    """Run a study with live progress, then print its answer and the path of its report.

    Raises:
        UserError, WorkError: those of the study's flow.
    """
    require_space(plan_artifacts(study))
    with shown_progress(Console(stderr=True)), ThreadPoolExecutor(1) as meanwhile:
        # The server takes seconds to start; meanwhile the text is made that the flow will ask for.
        meanwhile.submit(steps.make_text, study.corpus, study.tokenizer)
        server.result()
        report = run_study(study)
    for line in steps.answer_of(study.name):
        print(f"- {line}")
    print(f"Report: {report}")
