"""What `headstream up` deploys: a study, its report as Prefect artifacts, and the weekly check."""

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact
from prefect.deployments import run_deployment

from flows.hooks import fail_after, notify_of_failure
from flows.study import run_study
from tasks import places, steps
from tasks.housekeeping import check_all, require_all_well
from tasks.making import open_store
from tasks.markdown import as_markdown, escaped
from tasks.report.comparison import Summary, changes, summarise
from tasks.report.publishing import artifact_key, previous_summary
from tasks.results.claims import banner_of, claims_of
from tasks.results.study_record import latest_record
from tasks.results.study_results import open_results

HOUR = 3600.0


def request_report(flow: Any, flow_run: Any, state: Any) -> None:
    """Request the publication of a completed study's report."""
    parameters = {"study": _study_of(flow_run)}
    run_deployment("report/on-study", parameters=parameters, timeout=0, as_subflow=False)


def request_partial_report(flow: Any, flow_run: Any, state: Any) -> None:
    """Request the publication of a study's report where only some models failed, so that the run recorded a study."""
    record = latest_record(open_store(), _study_of(flow_run))
    if record and datetime.fromisoformat(record.manifest.created) >= flow_run.start_time:
        request_report(flow, flow_run, state)


def _study_of(flow_run: Any) -> str:
    study = flow_run.parameters["study"]
    return study if isinstance(study, str) else study.get("name", "")


nightly_study = run_study.with_options(
    on_running=[fail_after(24 * HOUR)],
    on_completion=[request_report],
    on_failure=[notify_of_failure, request_partial_report],
)


@flow(name="report", flow_run_name="report of {study}", on_running=[fail_after(HOUR)], on_failure=[notify_of_failure])
def publish_results(study: str) -> None:
    """Publish what a study found, and what has changed since its previous run, as Prefect artifacts.

    Raises:
        UserError: the study has not run.
    """
    link = _link(steps.report_again(study), study)
    answer = "\n".join(f"- {escaped(line)}" for line in steps.answer_of(study))
    create_markdown_artifact(f"# {escaped(study)}\n\n{answer}", key=artifact_key("report", study))
    create_link_artifact(link, link_text=f"report of {escaped(study)}", key=artifact_key("link", study))
    claims = claims_of(places.warehouse_file(), study, in_words=True).to_pylist()
    description = banner_of(places.warehouse_file(), study) or "What the study says about each claim."
    create_table_artifact(_cells(claims), key=artifact_key("claims", study), description=description)
    store = open_store()
    record = latest_record(store, study)
    if stored := record and previous_summary(store, record):
        before = Summary.from_json(stored)
        with open_results(places.warehouse_file(), study) as results:
            rows = _cells(map(vars, changes(before, summarise(results))))
        when = escaped(before.finished_at)
        since = f"What has changed since the run of {when} UTC: settings and text, claims, metrics."
        create_table_artifact(rows, key=artifact_key("changes", study), description=since)


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
    require_all_well(findings)
