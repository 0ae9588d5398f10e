"""What Prefect's server does by itself: a run that went silent is Crashed, and one that crashed starts again."""

from datetime import timedelta

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture

from flows.up import HEARTBEAT_SECONDS

SILENT_SECONDS = 3 * HEARTBEAT_SECONDS
MAX_RUNS = 3  # of one flow run, the first included

_RUNS = {"prefect.resource.id": "prefect.flow-run.*"}
_STUDIES = {"prefect.resource.role": "flow", "prefect.resource.name": "study"}
_ENDS = {f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Cancelled", "Crashed")}

AUTOMATIONS = (
    AutomationCore(
        name="headstream: silent runs are crashed",
        trigger=EventTrigger(
            match=_RUNS,
            match_related=_STUDIES,
            after={"prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.heartbeat", *_ENDS},
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=timedelta(seconds=SILENT_SECONDS),
        ),
        actions=[ChangeFlowRunState(state=StateType.CRASHED, message=f"no heartbeat for {SILENT_SECONDS} s")],
    ),
    AutomationCore(
        name="headstream: crashed runs start again",
        trigger=EventTrigger(
            match={**_RUNS, "prefect.run-count": [str(n) for n in range(1, MAX_RUNS)]},
            match_related=_STUDIES,
            expect={"prefect.flow-run.Crashed"},
            for_each={"prefect.resource.id"},
            posture=Posture.Reactive,
            threshold=1,
        ),
        actions=[ChangeFlowRunState(state=StateType.SCHEDULED, message="starts again where it was", force=True)],
    ),
)


def create_automations(client: SyncPrefectClient) -> None:
    """Create what is missing, and bring what is there up to date."""
    for automation in AUTOMATIONS:
        for existing in client.read_automations_by_name(automation.name):
            client.delete_automation(existing.id)
        client.create_automation(automation)
