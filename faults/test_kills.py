"""kill -9 of a running study: the next run ends as if nothing had happened, and no process is left behind."""

import random
import subprocess
from dataclasses import replace

import pytest

from faults.home import STAGES, Home, kill, made_from, require_same, runs_below, wait_until


@pytest.mark.fault("kill -9 while `{stage}` is made", "the next run has the same rows and weights")
@pytest.mark.parametrize("stage", STAGES)
def test_killed_in_a_stage(stage, finished, reference, study):
    finished.forget(*made_from(stage))
    wanted = finished.stagings(reference.artifacts(stage))
    process = finished.start("run", str(study))
    wait_until(lambda: any(folder.exists() for folder in wanted), process)
    kill(process)
    finished.run_well("run", str(study))
    require_same(finished, reference)


@pytest.mark.fault("kill -9 of a run {moment}", "the Prefect server that it started ends; the same rows and weights")
@pytest.mark.parametrize("moment", ["as soon as it started a Prefect server", "beside a Prefect server of its own"])
def test_killed_with_a_server_of_its_own(moment, finished, reference, study):
    alone = {name: value for name, value in finished.environment.items() if name != "PREFECT_API_URL"}
    home = replace(finished, environment=alone)
    home.forget("behaviour")
    process = home.start("run", str(study))
    has_server, works = lambda: runs_below(process.pid, "uvicorn"), lambda: home.artifacts("behaviour")
    wait_until(has_server if moment.startswith("as soon") else works, process)
    kill(process)
    home.run_well("run", str(study))
    require_same(home, reference)


@pytest.mark.fault("kill -9 while the warehouse is built", "the next run has the same rows and weights")
def test_killed_while_indexing(finished, reference, study):
    finished.forget()
    process = finished.start("run", str(study))
    wait_until(lambda: list(finished.warehouse.parent.glob("*.building*")), process)
    kill(process)
    finished.run_well("run", str(study))
    require_same(finished, reference)


@pytest.mark.fault("kill -9 at eight random moments of one study", "the next run has the same rows and weights")
def test_killed_at_random(home: Home, reference, study, record_property):
    moments = random.Random(7)
    killed = 0
    for _ in range(8):
        process = home.start("run", str(study))
        try:
            process.wait(moments.uniform(2, 12))
            break
        except subprocess.TimeoutExpired:
            kill(process)
            killed += 1
    record_property("killed", f"killed {killed} times")
    assert killed
    home.run_well("run", str(study))
    require_same(home, reference)
