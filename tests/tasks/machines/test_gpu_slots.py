"""One model a GPU, or several if each takes a share: in threads, in processes, and after one was killed."""

import multiprocessing
import signal
import threading
from contextlib import ExitStack

import pytest

from tasks.machines import gpu_slots
from tasks.machines.child_process import run_in_process
from tasks.machines.gpu_slots import gpu_slot, visible_gpus


@pytest.fixture(autouse=True)
def slots(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_slots.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(gpu_slots, "POLL_SECONDS", 0.01)


def held(stack: ExitStack, share: float, gpus: list[str]) -> str:
    return stack.enter_context(gpu_slot(share, gpus))["CUDA_VISIBLE_DEVICES"]


def test_each_model_has_a_gpu_of_its_own():
    with ExitStack() as stack:
        assert [held(stack, 1.0, ["0", "1", "3"]) for _ in range(3)] == ["0", "1", "3"]


def test_models_that_take_half_fill_every_gpu_once_before_any_twice():
    with ExitStack() as stack:
        assert [held(stack, 0.5, ["0", "1"]) for _ in range(4)] == ["0", "1", "0", "1"]


def test_a_model_that_takes_a_whole_gpu_waits_until_all_of_it_is_free():
    got = []

    def wait():
        with gpu_slot(1.0, ["0"]) as environment:
            got.append(environment)

    first, second = ExitStack(), ExitStack()
    held(first, 0.5, ["0"])
    held(second, 0.5, ["0"])
    waiting = threading.Thread(target=wait)
    waiting.start()
    first.close()
    waiting.join(0.2)
    assert not got
    second.close()
    waiting.join(60)
    assert got == [{"CUDA_VISIBLE_DEVICES": "0"}]


@pytest.mark.parametrize(("share", "n"), [(1 / 3, 3), (0.3, 3), (0.2, 5), (0.1, 10)])
def test_as_many_models_share_a_gpu_as_fit(share, n):
    with ExitStack() as stack:
        assert [held(stack, share, ["0", "1"]) for _ in range(2 * n)] == ["0", "1"] * n


def test_one_too_many_waits_for_the_first_that_ends():
    got = []

    def wait():
        with gpu_slot(1.0, ["0"]) as environment:
            got.append(environment)

    with gpu_slot(1.0, ["0"]):
        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join(0.1)
        assert not got
    waiting.join(60)
    assert got == [{"CUDA_VISIBLE_DEVICES": "0"}]


def _hold(folder: str, sender) -> None:
    gpu_slots.tempfile.gettempdir = lambda: folder
    with gpu_slot(1.0, ["0"]):
        sender.send("held")
        signal.pause()


def test_a_killed_process_leaves_its_slot_free(tmp_path):
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_hold, args=(str(tmp_path), sender), daemon=True)
    child.start()
    assert receiver.recv() == "held"
    child.kill()
    child.join()
    receiver.close()
    sender.close()
    child.close()
    with gpu_slot(1.0, ["0"]) as environment:
        assert environment == {"CUDA_VISIBLE_DEVICES": "0"}


def _seen(on_progress) -> list[str]:
    return visible_gpus()


def test_a_models_process_sees_its_gpu_alone(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    assert visible_gpus() == ["4", "7"]
    with gpu_slot(1.0), gpu_slot(1.0) as environment:
        assert run_in_process(_seen, environment=environment) == ["7"]
