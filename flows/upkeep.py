"""What runs beside studies: their reports as Prefect artifacts, and the weekly check."""

from uuid import UUID

from prefect import flow
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.client.orchestration import get_client

from flows.notices import tell_of_failure
from tasks import places, steps
from tasks.housekeeping import check_all, require_sound
from tasks.markdown import escaped
from tasks.store import Store


@flow(name="report", flow_run_name="report of {flow_run}", on_failure=[tell_of_failure], on_crashed=[tell_of_failure])
def publish_report(flow_run: str) -> None:
    """Publish the answer of the study that a flow run was of, and where its report is.

    `flow_run` is the run's id, or an event's name for it (`prefect.flow-run.<id>`).
    """
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(UUID(flow_run.removeprefix("prefect.flow-run.")))
    study = run.parameters["study"]
    name = study if isinstance(study, str) else study["name"]
    report = steps.report_again(name)
    lines = "\n".join(f"- {escaped(line)}" for line in steps.answer_of(name))
    create_markdown_artifact(
        f"# {name}\n\n{lines}\n\nThe whole report: `{report}`", key=f"report-{name.replace('_', '-')}"
    )


@flow(name="check", on_failure=[tell_of_failure], on_crashed=[tell_of_failure])
def check_everything() -> None:
    """Verify every artifact, the studies, the warehouse and the environment.

    Raises:
        WorkError: something does not hold.
    """
    findings = list(check_all(Store(places.store_folder()), places.warehouse_file()))
    create_table_artifact([vars(finding) for finding in findings], key="check")
    require_sound(findings)
