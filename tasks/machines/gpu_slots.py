"""Slots on this machine's GPUs, shared among all processes: as many on each as models of one share fit."""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def gpu_slot(share: float) -> Iterator[dict[str, str]]:
    """Wait for a free slot on a GPU and hold it: yields the environment in which a process sees that GPU alone.

    A `share` in (0, 1] cuts each GPU into floor(1 / share) slots: 0.5 into two, 0.3 into three. Slots of different
    shares are never held on one GPU, so a GPU is never overbooked. A process that dies frees its slot.
    """
    folder = Path(tempfile.gettempdir()) / f"headstream-gpus-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    with ExitStack() as held:
        # One process looks at a time: none takes a slot that another sees free, nor do small shares starve large ones.
        with FileLock(folder / "queue.lock", thread_local=False):
            while (gpu := _take_slot(int(1 / share + 1e-9), visible_gpus(), folder, held)) is None:
                time.sleep(0.5)
        yield {"CUDA_VISIBLE_DEVICES": gpu}


def _take_slot(n_slots: int, gpus: Sequence[str], folder: Path, held: ExitStack) -> str | None:
    """Hold one of `n_slots` slots on the GPU with the fewest models, and name that GPU; None if no slot is free."""
    slots = {f"{i} of {n_slots}" for i in range(n_slots)}
    taken = {gpu: _held_slots(folder / gpu) for gpu in gpus}
    for gpu in sorted(gpus, key=lambda gpu: len(taken[gpu])):
        if taken[gpu] < slots:
            path = folder / gpu / f"{min(slots - taken[gpu])}.lock"
            held.enter_context(FileLock(path, thread_local=False))
            return gpu
    return None


def _held_slots(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.lock") if _is_held(path)}


def _is_held(path: Path) -> bool:
    try:
        with FileLock(path, timeout=0, thread_local=False):
            return False
    except Timeout:
        return True


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, by CUDA's names."""
    import torch

    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",") if named else [str(i) for i in range(torch.cuda.device_count())]
