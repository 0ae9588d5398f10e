"""Sets up a process for training: its threads, its precision and its memory."""

import ctypes
from contextlib import suppress

import torch


def prepare_process(threads: int) -> None:
    """Set up this process for training: CPU threads, TF32 on GPUs that have it, and reuse of freed memory."""
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision("high")
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Have this process reuse large blocks of memory that it has freed.

    The C library would return them to the system, and every step would fault them in again (a fifth of its time).
    """
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        for threshold in (-3, -1):  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD
            libc.mallopt(threshold, 1 << 30)
