"""A Ray cluster for training and measuring: the one that RAY_ADDRESS names, or else a new one on this machine.

Every node needs the same code and Python, the store at the same path, and access to Prefect's server.
"""

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import httpx
import ray
from prefect import Task
from prefect.futures import PrefectFuture
from prefect.settings import PREFECT_API_URL
from prefect_ray.context import remote_options
from prefect_ray.task_runners import RayTaskRunner
from ray.util.queue import Queue
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from headstream.tasks import places, progress
from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.storage.code_version import code_version

CONNECT_SECONDS = 10.0  # for a cluster that is there
_PROGRESS = "headstream-progress"


@contextmanager
def opened_cluster(cpus: float) -> Iterator[Callable[..., PrefectFuture[Any]]]:
    """Connect to the Ray cluster; yields `submit(task, gpus=0.0, **parameters)`, which gives each task `cpus` cores.

    Raises:
        UserError: there is no cluster at RAY_ADDRESS or no Prefect server that nodes can reach, or a node can't take
            part; says which and why.
        WorkError: Ray didn't start.
    """
    api_url = PREFECT_API_URL.value()
    if not api_url:
        raise UserError(
            "runner = 'ray' needs a Prefect server that every node can reach. Start `headstream up --host ADDRESS`, and"
            " set PREFECT_API_URL=http://ADDRESS:4200/api."
        )
    environment = {"HEADSTREAM_HOME": str(places.home()), "PREFECT_API_URL": api_url}
    options = {
        "runtime_env": {"env_vars": environment, "worker_process_setup_hook": _send_progress},
        "log_to_driver": False,
    }
    _require_answer(os.environ.get("RAY_ADDRESS", ""))
    with ExitStack() as opened:
        runner = _start(opened, RayTaskRunner(init_kwargs=options))
        opened.enter_context(_shown_progress())
        _require_nodes(api_url)

        def submit(task: Task[..., Any], gpus: float = 0.0, **parameters: Any) -> PrefectFuture[Any]:
            _require_resources(cpus, gpus)
            with remote_options(num_cpus=cpus, num_gpus=gpus):
                return runner.submit(task, parameters)

        yield submit


def _require_answer(address: str) -> None:
    """Raise UserError when nobody listens at the address of a cluster: Ray would try for minutes."""
    given = re.fullmatch(r"(?:ray://)?\[?([^/]+?)\]?:(\d+)", address)
    if not given:  # none, or a word like `auto`
        return
    try:
        socket.create_connection((given[1], int(given[2])), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"no Ray cluster answers at RAY_ADDRESS = {address}: {error}. Start it, or unset RAY_ADDRESS to use this"
            " machine alone."
        ) from error


def _start(opened: ExitStack, runner: RayTaskRunner) -> RayTaskRunner:
    """Connect a runner to Ray until `opened` is closed.

    Raises:
        WorkError: Ray says, in a hundred lines, that it didn't start.
    """
    try:
        return opened.enter_context(runner)
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise WorkError(
            f"Ray did not start: {reason:.200}. {places.log_folder() / 'run.log'} and Ray's own logs may say why. Run"
            " the command again, or without --runner ray."
        ) from error


def _require_resources(cpus: float, gpus: float) -> None:
    """Raise UserError when no node has what a task needs: Ray would wait for one for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= gpus for node in nodes):
        raise UserError(
            f"no node of the Ray cluster has the {cpus:g} CPUs and {gpus:g} GPUs that a model takes."
            " Lower [resources], or set device = 'cpu'."
        )


def _require_nodes(api_url: str) -> None:
    token = places.store_folder() / ".staging" / f"{uuid4()}.shared"
    token.parent.mkdir(parents=True, exist_ok=True)
    token.touch()
    try:
        checks = {
            node["NodeManagerAddress"]: ray.remote(_obstacle)
            .options(num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False))
            .remote(token, code_version("headstream.flows.study"), api_url)
            for node in ray.nodes()
            if node["Alive"]
        }
        for address, check in checks.items():
            try:
                obstacle = ray.get(check, timeout=120)
            except Exception as error:  # from Ray, or from an import there
                reason = str(error).strip().splitlines()[-1]
                obstacle = f"can't run Headstream: {type(error).__name__}: {reason}"
            if obstacle:
                raise UserError(f"node {address} of the Ray cluster {obstacle}.")
    finally:
        token.unlink(missing_ok=True)


def _obstacle(token: Path, version: str, api_url: str) -> str | None:
    """The reason why this node can't take part, if there is one."""
    if not token.exists():
        return f"does not see {token.parents[1]}. Mount it there, or set HEADSTREAM_HOME to a shared folder"
    if code_version("headstream.flows.study") != version:
        return "has different code. Install the same version of Headstream there"
    try:
        httpx.get(f"{api_url}/health", timeout=30).raise_for_status()
    except httpx.HTTPError as error:
        name = type(error).__name__
        return f"can't reach Prefect at {api_url}: {name}. Set PREFECT_API_URL to an address that every node can reach"
    return None


def _send_progress() -> None:
    """In each worker, send all progress to the study's own process."""
    with suppress(ValueError):  # the worker outlived its study's process
        queue = ray.get_actor(_PROGRESS)
        progress.listen(lambda event: queue.put_nowait.remote(event))


@contextmanager
def _shown_progress() -> Iterator[None]:
    """In the study's process, publish the progress that workers send."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)  # other nodes may leave
    queue = Queue(actor_options={"name": _PROGRESS, "num_cpus": 0, "scheduling_strategy": here})

    def publish_all() -> None:
        while (event := queue.get()) is not None:
            progress.publish(event)

    thread = Thread(target=publish_all, daemon=True)
    thread.start()
    try:
        yield
    finally:
        queue.put(None)
        thread.join()
        queue.shutdown()
