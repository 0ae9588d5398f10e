"""kill -9 of a running study: the next run ends as if nothing had happened, and no process stays behind."""

import random
import signal
import time

import psutil
import pytest

from faults.home import SECONDS, Home, require_same

STAGES = ("corpus", "tokens", "training", "behaviour", "weight-circuits", "activation-circuits", "importance")
STAGES += ("pruning", "redundancy", "probes", "study", "report")
FIRST = STAGES[:3]  # all that follows is made from these


def kill(process) -> None:
    """kill -9 the command alone; its children must end by themselves."""
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    _, alive = psutil.wait_procs(family, timeout=30)
    assert not [p.cmdline() for p in alive]


def wait_until(what, process) -> None:
    deadline = time.monotonic() + SECONDS
    while not what():
        assert process.poll() is None, f"it ended before it could be killed: {process.stderr.read()}"
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.fault("kill -9 while `{stage}` is made", "the next run has the same rows and weights")
@pytest.mark.parametrize("stage", STAGES)
def test_killed_in_a_stage(stage, finished, reference, study):
    finished.forget(*(STAGES[STAGES.index(stage) :] if stage in FIRST else [stage]))
    wanted = [finished.staging(artifact) for artifact in reference.artifacts(stage)]
    process = finished.start("run", str(study))
    wait_until(lambda: any(folder.exists() for folder in wanted), process)
    kill(process)
    finished.run_well("run", str(study))
    require_same(finished, reference)


@pytest.mark.fault("kill -9 while the warehouse is built", "the next run has the same rows and weights")
def test_killed_while_indexing(finished, reference, study):
    finished.forget()
    process = finished.start("run", str(study))
    wait_until(lambda: list(finished.warehouse.parent.glob("warehouse.duckdb*")), process)
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
        except Exception:
            kill(process)
            killed += 1
        else:
            break
    record_property("killed", f"killed {killed} times")
    assert killed
    home.run_well("run", str(study))
    require_same(home, reference)
