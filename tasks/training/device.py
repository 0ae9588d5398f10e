"""A process set up for training: its threads, its precision, its memory."""

import ctypes
from contextlib import suppress

import torch


def prepare_process(threads: int) -> None:
    """Set up this process for training: its CPU threads, TF32 where a GPU has it, and memory that it keeps."""
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision("high")
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Have this process use large blocks of memory again that it has freed.

    The C library would hand them back to the system, and every step would fault them in anew (a fifth of its time).
    """
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        for threshold in (-3, -1):  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD
            libc.mallopt(threshold, 1 << 30)
