"""Chooses device, precision, thread count and compiling for a training run, all of which change its numbers."""

import ctypes
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass

import torch

from headstream.models.architecture import Architecture
from headstream.models.flops import forward_backward_flops
from headstream.tasks.study.training_config import TrainingConfig

# Compiling costs 10 to 30 s and saves a quarter to a half of each step; it pays from about this much training work.
COMPILE_PAYS_FROM_FLOPS = {"cpu": 3e12, "cuda": 1e15}  # for GPUs estimated, not measured


@dataclass(frozen=True)
class Numerics:
    """The choices that make the same config give different numbers; part of a training artifact's key."""

    device: str
    precision: str
    threads: int
    compiled: bool


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


def training_flops(architecture: Architecture, d_vocab: int, tokens: int) -> float:
    """Floating-point operations in the matrix products of training on a number of tokens."""
    n_ctx = architecture.n_ctx
    return tokens / n_ctx * forward_backward_flops(architecture, d_vocab, n_ctx)


def resolve_numerics(architecture: Architecture, config: TrainingConfig, d_vocab: int) -> tuple[Numerics, str]:
    """Resolve "auto" for this machine, and say in words why the model is or isn't compiled.

    A device that is requested by name need not exist here: a cluster may have it.
    """
    cuda = config.device == "cuda" or (config.device == "auto" and torch.cuda.is_available())
    device = "cuda" if cuda else "cpu"
    compiled, why = _decide_compile(config, device, training_flops(architecture, d_vocab, config.tokens))
    precision = fastest_precision(device) if config.precision == "auto" else config.precision
    return Numerics(device, precision, config.threads, compiled), why


def fastest_precision(device: str) -> str:
    """The precision, of those for training, in which a device multiplies matrices fastest."""
    return "bfloat16" if device == "cuda" or cpu_multiplies_bfloat16() else "float32"


def has_compiler() -> bool:
    """True if there is a C++ compiler, which torch.compile needs on a CPU."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def cpu_multiplies_bfloat16() -> bool:
    """True if this processor multiplies bfloat16 matrices in hardware."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def _decide_compile(config: TrainingConfig, device: str, flops: float) -> tuple[bool, str]:
    if config.compile == "never":
        return False, "not compiled: compile = 'never'"
    if config.compile == "auto" and flops < COMPILE_PAYS_FROM_FLOPS[device]:
        return False, f"not compiled: {flops:.1e} FLOPs of training are too few to pay for compiling"
    if not has_compiler():
        return False, "not compiled: no C++ compiler was found (set CXX, or install g++)"
    return True, f"compiled: {flops:.1e} FLOPs of training"
