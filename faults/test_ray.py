"""A study on a Ray cluster of two nodes: the grid spreads over both, and losing a node loses no results."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psutil
import pytest

from faults.home import SECONDS, Home, require_same

pytest.importorskip("ray", reason="Ray is not installed")


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two nodes of one core each, on this machine."""
    from ray.cluster_utils import Cluster

    nodes = Cluster()
    for _ in range(2):
        nodes.add_node(num_cpus=1, include_dashboard=False)
    try:
        yield nodes
    finally:
        nodes.shutdown()


@pytest.fixture
def on_ray(home, cluster) -> Home:
    """A home in which nothing has run, whose processes know the address of the cluster."""
    return replace(home, environment={**home.environment, "RAY_ADDRESS": cluster.address})


def works(node: Any) -> bool:
    """Whether a stage runs on a node: its processes come from a fork server of one of the node's workers."""
    found = False
    for entry in node.all_processes["raylet"]:
        for process in psutil.Process(entry.process.pid).children(recursive=True):
            try:
                found |= "forkserver" in " ".join(process.cmdline())
            except psutil.Error:
                continue
    return found


def wait_until(what: Callable[[], bool], process: Any) -> None:
    deadline = time.monotonic() + SECONDS
    while not what():
        assert process.poll() is None, f"it ended too early: {process.communicate()[1][-2000:]}"
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.fault("Ray, two nodes", "the grid spreads over both; the same rows and weights as on one machine")
def test_a_grid_spreads_over_two_nodes(on_ray, cluster, reference, study):
    process = on_ray.start("run", str(study), "--runner", "ray")
    nodes = [cluster.head_node, *cluster.worker_nodes]
    wait_until(lambda: all(works(node) for node in nodes), process)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    require_same(on_ray, reference)


@pytest.mark.fault("Ray, a node killed while it trains", "the other node goes on; the same rows and weights")
def test_a_node_removed_mid_study_loses_nothing(on_ray, cluster, reference, study):
    process = on_ray.start("run", str(study), "--runner", "ray")
    (node,) = cluster.worker_nodes
    wait_until(lambda: works(node), process)
    cluster.remove_node(node, allow_graceful=False)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    require_same(on_ray, reference)


@pytest.mark.fault("Ray on one machine, no Prefect server configured", "nodes reach the run's own; the same rows")
def test_without_a_configured_server(on_ray, reference, study):
    alone = replace(on_ray, environment={**on_ray.environment, "PREFECT_API_URL": ""})
    alone.run_well("run", str(study), "--runner", "ray")
    require_same(alone, reference)


@pytest.mark.fault("Ray, a Prefect server configured that nodes can't reach", "one clear line, exit code 2")
def test_a_server_that_nodes_do_not_reach(on_ray, study):
    environment = {**on_ray.environment, "PREFECT_API_URL": "http://127.0.0.1:9/api"}
    done = replace(on_ray, environment=environment).run("run", str(study), "--runner", "ray")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("headstream: ")
    assert "Traceback" not in done.stderr


ASKED = {"64 CPUs": "[resources]\ncpus = 64", "a GPU": "[resources]\ngpus = 1.0\n[training]\ndevice = 'cuda'"}


@pytest.mark.fault("Ray, a model asks for {what}, which no node has", "one clear line, exit code 2")
@pytest.mark.parametrize("what", ASKED)
def test_more_than_a_node_has(on_ray, what, study, tmp_path):
    asked = ASKED[what]
    file = tmp_path / "wide.toml"
    text = study.read_text()
    file.write_text(text.replace("[training]\n", f"{asked}\n" if "[training]" in asked else f"{asked}\n[training]\n"))
    done = on_ray.run("run", str(file), "--runner", "ray")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("headstream: no node of the Ray cluster has the ")
