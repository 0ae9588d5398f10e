"""Runners of a study's training and measuring: threads of this process, or a Ray cluster."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from prefect import Task
from prefect.futures import PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner

from headstream.tasks.errors import UserError
from headstream.tasks.study.models_at_once import models_at_once
from headstream.tasks.study.resources_config import ResourcesConfig, Runner

Submit = Callable[..., PrefectFuture[Any]]


@contextmanager
def opened_runner(runner: Runner, resources: ResourcesConfig) -> Iterator[Submit]:
    """Yield `submit(task, gpus=0.0, **parameters)`, which returns a future; the end of the block waits for all of them.

    Raises:
        UserError: Ray isn't installed, or a node of its cluster can't take part.
    """
    if runner == "threads":
        opened = _opened_threads(models_at_once(resources))
    else:
        try:
            from headstream.tasks.machines.ray_cluster import opened_cluster
        except ImportError:
            raise UserError(
                "runner = 'ray' needs Ray, which is not installed. Run `pip install -c constraints.txt -e '.[ray]'` in"
                " Headstream's folder."
            ) from None
        opened = opened_cluster(resources.cpus)
    with opened as submit:
        yield submit


@contextmanager
def _opened_threads(jobs: int) -> Iterator[Submit]:
    runner: ThreadPoolTaskRunner[Any] = ThreadPoolTaskRunner(max_workers=jobs)
    with runner as threads:

        def submit(task: Task[..., Any], gpus: float = 0.0, **parameters: Any) -> PrefectFuture[Any]:
            return threads.submit(task, parameters)

        yield submit
