"""Flows that `headstream up` deploys: a study with its report as Prefect artifacts, and the weekly check."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.deployments import run_deployment

from headstream.flows.hooks import fail_after, notify_of_failure
from headstream.flows.study import run_study
from headstream.tasks import places
from headstream.tasks.report.published_page import page_of_failure, page_of_results
from headstream.tasks.report.publishing import artifact_key, previous_summary
from headstream.tasks.results.study_results import open_results
from headstream.tasks.steps.report_steps import report_again
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.storage.latest_records import latest_record
from headstream.tasks.studies.housekeeping import check_all, require_all_passed
from headstream.tasks.study.names import STUDY_NAME
from headstream.tasks.words.markdown import as_markdown

HOUR = 3600.0


def request_report(flow: Any, flow_run: Any, state: Any) -> None:
    """Request the publication of what a study found or, if its run failed, of why."""
    study = flow_run.parameters["study"]
    name = study.get("name") if isinstance(study, dict) else getattr(study, "name", study)
    if not isinstance(name, str) or not re.fullmatch(STUDY_NAME, name):
        return  # no study can have that name, and no artifact: the run's state says so
    parameters = {"study": name, "failure": state.message or state.name if state.is_failed() else ""}
    run_deployment("report/on-study", parameters=parameters, timeout=0, as_subflow=False)


nightly_study = run_study.with_options(
    on_running=[fail_after(24 * HOUR)], on_completion=[request_report], on_failure=[notify_of_failure, request_report]
)


@flow(name="report", flow_run_name="report of {study}", on_running=[fail_after(HOUR)], on_failure=[notify_of_failure])
def publish_results(study: str, failure: str = "") -> None:
    """Publish what a study found, what has changed since its previous run and why the last one failed, as one page.

    Raises:
        UserError: the study has not run, and no failure is to be published.
    """
    store = open_store()
    record = latest_record(store, study)
    if record is None and failure:
        page = page_of_failure(study, failure)
    else:
        report = report_again(study)
        previous = previous_summary(store, record) if record else None
        with open_results(places.warehouse_file(), study) as results:
            page = page_of_results(results, report, _link(report, study), previous, failure)
    create_markdown_artifact(page, key=artifact_key("report", study))


def _link(report: Path, study: str) -> str:
    """The address of a report: below HEADSTREAM_REPORTS_URL if it is set, else the file on this machine."""
    served = os.environ.get("HEADSTREAM_REPORTS_URL")
    return f"{served.rstrip('/')}/{study}/{report.name}" if served else report.as_uri()


def _cells(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a Prefect table artifact, with cells escaped because Prefect renders them as markdown."""
    return [{name: as_markdown(value) for name, value in row.items()} for row in rows]


@flow(name="check", on_running=[fail_after(6 * HOUR)], on_failure=[notify_of_failure])
def check_everything() -> None:
    """Verify every artifact, the studies, the warehouse and the environment.

    Raises:
        WorkError: something does not hold.
    """
    findings = list(check_all(open_store(), places.warehouse_file()))
    create_table_artifact(_cells(map(vars, findings)), key="check")
    require_all_passed(findings)
