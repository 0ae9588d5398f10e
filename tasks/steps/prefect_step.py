"""A step of a study as a Prefect task: the store remembers it, and it is tried again after what may pass."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State

from headstream.tasks.errors import TextChanged
from headstream.tasks.graph.materialising import materialise
from headstream.tasks.graph.step import LeftOut, Step
from headstream.tasks.machines.child_process import ProcessDied
from headstream.tasks.steps.prefect_progress import shown_in_prefect
from headstream.tasks.storage.artifact import Artifact

P = ParamSpec("P")
R = TypeVar("R")

# A child that died may live next time, a busy disk or a text come to rest; a loss that diverged stays so.
TRANSIENT = (ProcessDied, TextChanged, OSError)
RETRY_SECONDS = (2, 4)

log = logging.getLogger(__name__)


def _is_transient(task: Any, run: Any, state: State) -> bool:
    return isinstance(state.result(raise_on_failure=False), TRANSIENT)


def prefect_step(run_name: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A Prefect task that the store, not Prefect, remembers."""
    return task(
        task_run_name=run_name,
        cache_policy=NO_CACHE,
        persist_result=False,
        retries=len(RETRY_SECONDS),
        retry_delay_seconds=[*RETRY_SECONDS],
        retry_condition_fn=_is_transient,
    )


@prefect_step("{step.run_name}")
def make(step: Step, inputs: Mapping[str, Artifact | LeftOut]) -> Artifact | LeftOut:
    """A step's artifact, found or made, or why there is none to make; a training has a bar in Prefect's pages."""
    if left_out := step.left_out({step.inputs[role]: given for role, given in inputs.items()}):
        return left_out
    if step.note:
        log.info(step.note)
    there = {role: given for role, given in inputs.items() if isinstance(given, Artifact)}  # all of them
    if step.makes_model and step.stage.is_resumable:
        assert step.cell_id_of is not None
        return materialise(step, there, shown_in_prefect(step.cell_id_of(step.spec_of(there)), step.subject))
    return materialise(step, there)
