"""The command `headstream run`: a study with live progress."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from headstream.flows.followed_runs import displayed_by
from headstream.flows.prefect_server import starting_server  # first: it tells Prefect to be quiet
from headstream.flows.progress_display import shown_progress, shown_waiting
from headstream.flows.study import run_study
from headstream.flows.study_progress import StudyProgress
from headstream.tasks.graph.finished_study import result_lines
from headstream.tasks.graph.looks import at_its_look, next_look
from headstream.tasks.machines.child_process import start_fork_server
from headstream.tasks.machines.stopping import StopMessage
from headstream.tasks.steps.compile_steps import compiles
from headstream.tasks.steps.report_steps import answer_of
from headstream.tasks.study.schema import Study


def run_with_progress(
    study: Study, terminal: TextIO, words: StopMessage, within_hours: float | None = None
) -> list[str]:
    """Run a study with live progress; its answer and the path of its report, line by line.

    Raises:
        UserError, WorkError: those of the study's flow.
    """

    @contextmanager
    def display(progress: StudyProgress) -> Iterator[None]:
        words.how_far = progress.how_far
        with shown_progress(progress, terminal):
            yield

    with starting_server() as server, displayed_by(display):
        with shown_waiting(f"{study.name}: starting Prefect's server", terminal):
            start_fork_server(compiles(study))  # which imports torch meanwhile
            server.result()
        report = run_study(study, within_hours)
    lines = result_lines(answer_of(study.name), report)
    look = at_its_look(study)
    if more := next_look(look):
        n_more = len(more.cells) - len(look.cells)
        lines.append(f"Undecided, and out of time: the same command goes on with {n_more} models more.")
    return lines
