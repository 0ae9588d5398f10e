"""One model a GPU, or several if each takes a share: in one process and in two, and after one was killed."""

import multiprocessing
import os
import signal
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from headstream.tasks.machines import gpu_slots
from headstream.tasks.machines.child_process import run_in_process
from headstream.tasks.machines.gpu_slots import gpu_slot, visible_gpus


class Waits(Exception):
    """No slot is free."""


@pytest.fixture(autouse=True)
def slots(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_slots.tempfile, "gettempdir", lambda: str(tmp_path))
    while_waiting(monkeypatch, refuse)


def while_waiting(monkeypatch, do) -> None:
    monkeypatch.setattr(gpu_slots, "time", SimpleNamespace(sleep=lambda seconds: do()))


def refuse() -> None:
    raise Waits


def hold(stack: ExitStack, share: float, gpus: list[str]) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", ",".join(gpus))
        return stack.enter_context(gpu_slot(share))["CUDA_VISIBLE_DEVICES"]


def test_each_model_has_a_gpu_of_its_own():
    with ExitStack() as stack:
        assert [hold(stack, 1.0, ["0", "1", "3"]) for _ in range(3)] == ["0", "1", "3"]


@pytest.mark.parametrize(
    ("share", "n"), [(1.0, 1), (0.7, 1), (0.5, 2), (0.4, 2), (1 / 3, 3), (0.3, 3), (0.2, 5), (0.1, 10), (1 / 93, 93)]
)
def test_as_many_models_share_a_gpu_as_fit_and_fill_all_evenly(share, n):
    with ExitStack() as stack:
        assert [hold(stack, share, ["0", "1"]) for _ in range(2 * n)] == ["0", "1"] * n
        with pytest.raises(Waits):
            hold(stack, share, ["0", "1"])


def test_the_next_model_goes_where_one_ended():
    with ExitStack() as stack, ExitStack() as ending:
        assert [hold(ending, 0.5, ["0", "1"]), hold(stack, 0.5, ["0", "1"])] == ["0", "1"]
        assert [hold(ending, 0.5, ["0", "1"]), hold(stack, 0.5, ["0", "1"])] == ["0", "1"]
        ending.close()
        assert [hold(stack, 0.5, ["0", "1"]) for _ in range(2)] == ["0", "0"]


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.3), (0.3, 0.5), (0.5, 1.0), (1.0, 0.1)])
def test_models_of_different_shares_do_not_meet_on_a_gpu(first, second):
    with ExitStack() as stack:
        assert hold(stack, first, ["0"]) == "0"
        with pytest.raises(Waits):
            hold(stack, second, ["0"])
        assert hold(stack, second, ["0", "1"]) == "1"
        with pytest.raises(Waits):
            hold(stack, first, ["1"])


def test_a_model_that_takes_more_waits_until_all_of_a_gpu_is_free(monkeypatch):
    with ExitStack() as first, ExitStack() as second, ExitStack() as third:
        held = [first, second]
        assert [hold(stack, 0.5, ["0"]) for stack in held] == ["0", "0"]
        while_waiting(monkeypatch, lambda: held.pop().close())
        assert hold(third, 1.0, ["0"]) == "0"
        assert held == []


def _hold(folder: str, share: float, sender) -> None:
    gpu_slots.tempfile.gettempdir = lambda: folder
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    with gpu_slot(share):
        sender.send("held")
        signal.pause()


@pytest.mark.parametrize(("theirs", "ours"), [(1.0, 1.0), (0.5, 0.3)])
def test_a_killed_process_leaves_its_slot_free(tmp_path, theirs, ours):
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_hold, args=(str(tmp_path), theirs, sender), daemon=True)
    child.start()
    assert receiver.recv() == "held"
    with pytest.raises(Waits), ExitStack() as stack:
        hold(stack, ours, ["0"])
    child.kill()
    child.join()
    receiver.close()
    sender.close()
    child.close()
    with ExitStack() as stack:
        assert hold(stack, ours, ["0"]) == "0"


def _seen(on_progress) -> list[str]:
    return visible_gpus()


def test_a_models_process_sees_its_gpu_alone(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    assert visible_gpus() == ["4", "7"]
    with gpu_slot(1.0), gpu_slot(1.0) as environment:
        assert run_in_process(_seen, environment=environment) == ["7"]
