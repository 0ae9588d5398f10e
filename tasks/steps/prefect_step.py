"""What every step is: a Prefect task that the store remembers, tried again after what may pass."""

import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State

from headstream.tasks.errors import TextChanged
from headstream.tasks.machines.child_process import ProcessDied

P = ParamSpec("P")
R = TypeVar("R")

# A child that died may live next time, a busy disk or a text come to rest; a loss that diverged stays so.
TRANSIENT = (ProcessDied, TextChanged, OSError)
RETRY_SECONDS = (2, 4)


def _is_transient(task: Any, run: Any, state: State) -> bool:
    return isinstance(state.result(raise_on_failure=False), TRANSIENT)


def step(run_name: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A Prefect task that the store, not Prefect, remembers."""
    return task(
        task_run_name=run_name,
        cache_policy=NO_CACHE,
        persist_result=False,
        retries=len(RETRY_SECONDS),
        retry_delay_seconds=[*RETRY_SECONDS],
        retry_condition_fn=_is_transient,
    )


def alone(work: Task[P, R], *arguments: P.args, **options: P.kwargs) -> R:
    """What a step does, outside of any flow, and tried again as in one."""
    for delay in RETRY_SECONDS:
        try:
            return work.fn(*arguments, **options)
        except TRANSIENT:
            time.sleep(delay)
    return work.fn(*arguments, **options)
