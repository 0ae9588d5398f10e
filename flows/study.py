"""A study from corpus to report: the table of contents of Headstream."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from prefect import flow, runtime
from prefect.futures import PrefectFuture

from headstream.flows.hooks import notify_of_failure
from headstream.flows.study_progress import StudyProgress
from headstream.tasks.graph.making import prepare, store_in_use
from headstream.tasks.graph.planning import plan_artifacts, require_space
from headstream.tasks.graph.scheduling import first_finished_first, longest_first
from headstream.tasks.importing.imported_cell import ModelCell, read_imported
from headstream.tasks.machines.runners import models_at_once, opened_runner
from headstream.tasks.progress import listening
from headstream.tasks.steps.model_steps import (
    import_from_elsewhere,
    measure_costs,
    outcome,
    require_device,
    require_success,
    start_analyses,
    start_training,
)
from headstream.tasks.steps.report_steps import index_results, record_study, write_report
from headstream.tasks.steps.text_steps import read_corpus, require_text, tokenise, tokenise_for
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.studies.own_names import reserve_name, study_from_prefect
from headstream.tasks.study.schema import NamedStudy, ShippedStudy, Study
from headstream.tasks.text.allowed_files import require_allowed, require_allowed_models
from headstream.tasks.watching.run_snapshots import snapshots_kept


def _run_name() -> str:
    study = runtime.flow_run.parameters["study"]
    name = study.get("name") if isinstance(study, dict) else getattr(study, "name", study)
    return f"{name:.64}" if isinstance(name, str) else "study"


@contextmanager
def _planned(study: Study) -> Iterator[None]:
    """Have room for what is to run, or raise WorkError; and while it runs, tell watchers how far it is."""
    planned = plan_artifacts(study)
    require_space(planned)
    progress = StudyProgress(study.name, planned, models_at_once(study.resources))
    with listening(progress.hear), snapshots_kept(study.name, progress.snapshot):
        yield


@flow(
    name="study",
    flow_run_name=_run_name,
    on_failure=[notify_of_failure],
    validate_parameters=False,  # `study_from_prefect` does, and says in one line what is wrong
)
def run_study(study: ShippedStudy | NamedStudy | Study) -> Path:
    """Make whatever the study still lacks, and return where its report is.

    `study` is the name of a study that ships or has run here, or a whole study.

    Raises:
        UserError: no study has that name; a deployed study has the name of another one, or asks for files outside of
            the allowed folders; or a model can't be trained here or on this text.
        WorkError: the disk has no room for the study; or a model failed; the others, and the report, are there all the
            same.
    """
    (study, file), started = study_from_prefect(study), time.monotonic()
    is_deployed = runtime.deployment.id is not None
    if is_deployed:
        require_allowed(study.corpus)
        require_allowed_models(study.models)
        reserve_name(study, file)
    planned = _planned(study) if is_deployed else nullcontext()  # else the command line has planned it
    with store_in_use(), planned:
        require_device(study)
        prepare()
        imported = read_imported(study.models)
        every: list[ModelCell] = [*study.cells, *imported]
        corpus = read_corpus(study.corpus)
        own = [tokenise(study.tokenizer, corpus)] if study.trains else []
        tokens: dict[ModelCell, Artifact] = {cell: text for text in own for cell in study.cells}
        tokens |= {cell: tokenise_for(cell, corpus) for cell in imported}
        require_text(tokens)
        costs = [measure_costs(study.costs, study.name)] if study.measures_costs else []

        vocabulary = study.tokenizer.vocabulary
        cells = longest_first(study.cells, vocabulary)
        with opened_runner(study.runner, study.resources) as submit:
            models: dict[ModelCell, PrefectFuture[Artifact]]
            models = {
                cell: submit(import_from_elsewhere, cell=cell, tokens=tokens[cell], corpus=corpus) for cell in imported
            }
            trained = {cell: start_training(submit, cell, tokens[cell], study.resources.gpus) for cell in cells}
            in_turn = first_finished_first(cells, vocabulary, models_at_once(study.resources))
            models |= {cell: trained[cell] for cell in in_turn}
            analyses = {
                cell: start_analyses(submit, study.analysis, cell, model, tokens[cell], study.resources.gpus)
                for cell, model in models.items()
            }
            outcomes = [outcome(cell, tokens[cell], models[cell], analyses[cell]) for cell in every]

        record = record_study(study, outcomes, [corpus, *own, *costs], started)
        index_results()
        report = write_report(record)
        require_success(outcomes, report)
        return report
