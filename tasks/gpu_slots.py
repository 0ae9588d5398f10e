"""Slots of this machine's GPUs: one model a GPU, or several if each takes a share, whichever process asks."""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch
from filelock import FileLock, Timeout

POLL_SECONDS = 0.5


@contextmanager
def gpu_slot(share: float, gpus: Sequence[str] | None = None) -> Iterator[dict[str, str]]:
    """Wait for a free slot, and hold it: yields the environment in which a process sees its GPU alone.

    `share` of a GPU, in (0, 1]: 0.5 lets two models on each. A process that dies leaves its slot free.
    """
    folder = Path(tempfile.gettempdir()) / f"headstream-gpus-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    slots = [(gpu, folder / f"{gpu}-{i}.lock") for i in range(int(1 / share)) for gpu in gpus or visible_gpus()]
    with ExitStack() as held:
        while True:
            for gpu, file in slots:  # the first slot of each GPU before the second of any
                try:
                    held.enter_context(FileLock(file, timeout=0, thread_local=False))
                except Timeout:
                    continue
                yield {"CUDA_VISIBLE_DEVICES": gpu}
                return
            time.sleep(POLL_SECONDS)


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",") if named else [str(i) for i in range(torch.cuda.device_count())]
