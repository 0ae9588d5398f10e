"""A study from corpus to report: the table of contents of Headstream."""

import time
from pathlib import Path

from prefect import flow, runtime

from headstream.flows.followed_runs import shown_and_kept
from headstream.flows.hooks import notify_of_failure
from headstream.tasks.graph.looks import at_its_look, next_look
from headstream.tasks.graph.outcomes import outcomes, shared_artifacts
from headstream.tasks.graph.planning import plan_artifacts, plan_steps, require_space, seconds_left
from headstream.tasks.graph.study_graph import study_graph
from headstream.tasks.machines.child_process import start_fork_server
from headstream.tasks.machines.runners import opened_runner
from headstream.tasks.steps.compile_steps import compiles, compiling_ahead
from headstream.tasks.steps.report_steps import index_results, record_study, write_report
from headstream.tasks.steps.study_steps import make_models, make_text, require_device, require_success, require_text
from headstream.tasks.storage.home_store import open_store, store_in_use
from headstream.tasks.studies.own_names import reserve_name, study_from_prefect
from headstream.tasks.study.models_at_once import models_at_once
from headstream.tasks.study.schema import NamedStudy, ShippedStudy, Study
from headstream.tasks.text.allowed_files import require_allowed, require_allowed_models


def _run_name() -> str:
    study = runtime.flow_run.parameters["study"]
    name = study.get("name") if isinstance(study, dict) else getattr(study, "name", study)
    return f"{name:.64}" if isinstance(name, str) else "study"


@flow(
    name="study",
    flow_run_name=_run_name,
    on_failure=[notify_of_failure],
    validate_parameters=False,  # `study_from_prefect` does, and says in one line what is wrong
)
def run_study(study: ShippedStudy | NamedStudy | Study, within_hours: float | None = None) -> Path:
    """Make whatever the study still lacks, and return where its report is.

    `study` is the name of a study that ships or has run here, or a whole study. One that trains seeds until its claims
    are decided goes from look to look, `within_hours`: it then stops at a look, if the next one would take longer.

    Raises:
        UserError: no study has that name; a deployed study has the name of another one, or asks for files outside of
            the allowed folders; or a model can't be trained here or on this text.
        WorkError: the disk has no room for the study; or a model failed; the others, and the report, are there all the
            same.
    """
    started, look = time.monotonic(), at_its_look(_admitted(study))
    with store_in_use():
        report = _run_look(look, started)
        while (more := next_look(look)) and _ends_by(more, started, within_hours):
            look, report = more, _run_look(more, started)
    return report


def _run_look(study: Study, started: float) -> Path:
    """Make whatever a study lacks with the seeds that it has at a look, or at all, and its report."""
    jobs, steps = models_at_once(study.resources), study_graph(study)
    planned = plan_steps(steps)
    require_space(planned)
    require_device(study)
    with shown_and_kept(study.name, planned, jobs):
        start_fork_server(compiles(study))
        open_store().sweep()
        with compiling_ahead(study, planned):
            text = make_text(steps)
        require_text(steps, text)
        with opened_runner(study.runner, study.resources) as submit:
            made = make_models(steps, text, submit, jobs)
        models = outcomes(steps, made)
        record = record_study(study, models, shared_artifacts(steps, made), started)
        index_results()
        report = write_report(record)
        require_success(models, report)
        return report


def _ends_by(study: Study, started: float, within_hours: float | None) -> bool:
    """Tell if what a study lacks will be made in time, as far as is known before."""
    if within_hours is None:
        return True
    seconds = seconds_left(plan_artifacts(study), models_at_once(study.resources))
    return time.monotonic() - started + seconds <= 3600 * within_hours


def _admitted(sent: str | Study) -> Study:
    """The study that was sent; of one that a deployment runs, files and name are allowed."""
    study, file = study_from_prefect(sent)
    if runtime.deployment.id is not None:
        require_allowed(study.corpus)
        require_allowed_models(study.models)
        reserve_name(study, file)
    return study
