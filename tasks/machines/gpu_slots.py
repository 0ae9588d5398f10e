"""Slots of this machine's GPUs: one model a GPU, or several if each takes a share, whichever process asks."""

import math
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path

import torch
from filelock import FileLock, Timeout

POLL_SECONDS = 0.5
PARTS = 60  # of a GPU, each a lock: as many as divide well


@contextmanager
def gpu_slot(share: float, gpus: Sequence[str] | None = None) -> Iterator[dict[str, str]]:
    """Wait for a free slot, and hold it: yields the environment in which a process sees its GPU alone.

    `share` of a GPU, in (0, 1]: 0.5 lets two models on each. A process that dies leaves its slot free.
    """
    folder = Path(tempfile.gettempdir()) / f"headstream-gpus-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    n_parts = math.ceil(share * PARTS - 1e-9)
    with ExitStack() as held:
        # Who waits for much is not overtaken for ever by those who take little.
        with FileLock(folder / "queue.lock", thread_local=False):
            while (gpu := _take(n_parts, gpus or visible_gpus(), folder, held)) is None:
                time.sleep(POLL_SECONDS)
        yield {"CUDA_VISIBLE_DEVICES": gpu}


def _take(n_parts: int, gpus: Sequence[str], folder: Path, held: ExitStack) -> str | None:
    """Hold parts of the GPU that has most of them free; None if none has enough."""
    free = {gpu: [lock for i in range(PARTS) if _locks(lock := _part(folder, gpu, i))] for gpu in gpus}
    gpu = max(gpus, key=lambda gpu: len(free[gpu]))
    taken = free[gpu][:n_parts] if len(free[gpu]) >= n_parts else []
    for lock in chain(*free.values()):
        if lock in taken:
            held.callback(lock.release)
        else:
            lock.release()
    return gpu if taken else None


def _part(folder: Path, gpu: str, i: int) -> FileLock:
    return FileLock(folder / f"{gpu}-{i}.lock", timeout=0, thread_local=False)


def _locks(lock: FileLock) -> bool:
    try:
        lock.acquire()
    except Timeout:
        return False
    return True


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",") if named else [str(i) for i in range(torch.cuda.device_count())]
