"""A study of which nothing is missing: found in the store by what it is made of, without Prefect."""

from collections.abc import Sequence
from pathlib import Path

from headstream.tasks import places
from headstream.tasks.graph.artifact_specs import record_spec, report_spec
from headstream.tasks.graph.looks import at_its_look, next_look
from headstream.tasks.graph.outcomes import outcomes, shared_artifacts
from headstream.tasks.graph.step import Step, StepName
from headstream.tasks.graph.study_graph import study_graph
from headstream.tasks.report.publishing import previous_summary, publish_report
from headstream.tasks.results.warehouse import build_warehouse
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.home_store import open_store, store_in_use
from headstream.tasks.storage.latest_records import latest_record
from headstream.tasks.storage.store import Store
from headstream.tasks.study.schema import Study
from headstream.tasks.watching.run_snapshots import forget_run


@store_in_use()
def finished_result_lines(study: Study) -> list[str] | None:
    """The result of a study of which nothing is missing, its report published again; None if something is."""
    study = at_its_look(study)
    report = finished_report(study)
    if report is None:
        return None
    build_warehouse(open_store(), places.warehouse_file())
    if next_look(study):
        return None
    forget_run(study.name)
    return result_lines(report.manifest.facts["answer"], publish_report(report, places.report_folder(study.name)))


def result_lines(answer: Sequence[str], report: Path) -> list[str]:
    """A study's answer and the path of its report, line by line."""
    return [*(f"- {line}" for line in answer), f"Report: {report}"]


def finished_report(study: Study) -> Artifact | None:
    """The report of a study's last run, if a run would make nothing; else None."""
    store, steps = open_store(), study_graph(study)
    made = _find_all(steps, store)
    if made is None:
        return None
    recorded = outcomes(steps, made), shared_artifacts(steps, made), latest_record(store, study.name)
    record = store.find(record_spec(study.recorded, *recorded))
    return store.find(report_spec(record, previous_summary(store, record))) if record else None


def _find_all(steps: Sequence[Step], store: Store) -> dict[StepName, Artifact | BaseException] | None:
    """The artifact of each step, or why there is nothing to make; None as soon as one is missing."""
    found: dict[StepName, Artifact | BaseException] = {}
    for step in steps:
        if left_out := step.left_out(found):
            found[step.name] = left_out
            continue
        artifact = store.find(step.spec_of(step.given(found)))
        if artifact is None:
            return None
        found[step.name] = artifact
    return found
