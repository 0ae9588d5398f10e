"""The command `headstream run`: a study with live progress."""

from collections.abc import Sequence
from threading import Event, Thread
from typing import TextIO

from headstream.flows.prefect_server import starting_server  # first: it tells Prefect to be quiet
from headstream.flows.progress_display import shown_progress
from headstream.flows.study import run_study
from headstream.flows.study_progress import StudyProgress
from headstream.tasks.graph.finished_study import told
from headstream.tasks.graph.making import store_in_use
from headstream.tasks.graph.planning import PlannedArtifact, plan_artifacts, require_space
from headstream.tasks.importing.imported_cell import read_imported
from headstream.tasks.machines.child_process import start_fork_server
from headstream.tasks.machines.runners import models_at_once
from headstream.tasks.machines.stopping import StopMessage
from headstream.tasks.steps.model_steps import compile_ahead, require_device
from headstream.tasks.steps.prefect_step import alone
from headstream.tasks.steps.report_steps import answer_of
from headstream.tasks.steps.text_steps import make_tokens, read_corpus
from headstream.tasks.study.schema import Study
from headstream.tasks.watching.run_snapshots import snapshots_kept


@store_in_use()
def run_with_progress(study: Study, terminal: TextIO, words: StopMessage) -> list[str]:
    """Run a study with live progress; its answer and the path of its report, line by line.

    Prefect's server starts once the corpus could be read; models are compiled for while text is made of it.

    Raises:
        UserError, WorkError: those of the study's flow.
    """
    planned = plan_artifacts(study)
    require_space(planned)
    require_device(study)
    progress = StudyProgress(study.name, planned, models_at_once(study.resources))
    words.how_far = progress.how_far
    with shown_progress(progress, terminal), snapshots_kept(study.name, progress.snapshot):
        start_fork_server()
        trainings_begin = _compile_meanwhile(study, planned)
        corpus = alone(read_corpus, study.corpus)
        with starting_server() as server:
            make_tokens(study, read_imported(study.models), corpus)
            server.result()
            trainings_begin.set()
            report = run_study(study)
    return told(answer_of(study.name), report)


def _compile_meanwhile(study: Study, planned: Sequence[PlannedArtifact]) -> Event:
    """In a thread that an error elsewhere doesn't wait for, until the event that is returned is set."""
    to_train = {step.subject for step in planned if step.stage == "training" and not step.done}
    cells = [cell for cell in study.cells if cell.label in to_train]
    begun, limits = Event(), (models_at_once(study.resources), study.resources.gpus)
    work = (cells, study.tokenizer.vocabulary, *limits, begun.is_set)
    Thread(target=compile_ahead, args=work, daemon=True).start()
    return begun
