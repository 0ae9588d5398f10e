"""The choices of a training run that change its numbers: device, precision, thread count and compiler.

They are made without torch, which takes a second to import: `plan` makes them, too.
"""

import ctypes
import os
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

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


def training_flops(architecture: Architecture, d_vocab: int, tokens: int) -> float:
    """Floating-point operations in the matrix products of training on a number of tokens."""
    n_ctx = architecture.n_ctx
    return tokens / n_ctx * forward_backward_flops(architecture, d_vocab, n_ctx)


def resolve_numerics(architecture: Architecture, config: TrainingConfig, d_vocab: int) -> tuple[Numerics, str]:
    """Resolve "auto" for this machine, and say in words why the model is or isn't compiled.

    A device that is requested by name need not exist here: a cluster may have it.
    """
    cuda = config.device == "cuda" or (config.device == "auto" and has_gpu())
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
    return bool({"avx512_bf16", "amx_tile"} & _cpu_flags())


def has_gpu() -> bool:
    """True if torch can compute on a GPU here. Without NVIDIA's driver it can't, and torch isn't loaded to check."""
    if "torch" not in sys.modules:
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            return False
    import torch

    return torch.cuda.is_available()


@cache
def _cpu_flags() -> frozenset[str]:
    """The instruction sets that this processor and its kernel have, as Linux names them; none elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), ()))


def _decide_compile(config: TrainingConfig, device: str, flops: float) -> tuple[bool, str]:
    if config.compile == "never":
        return False, "not compiled: compile = 'never'"
    if config.compile == "auto" and flops < COMPILE_PAYS_FROM_FLOPS[device]:
        return False, f"not compiled: {flops:.1e} FLOPs of training are too few to pay for compiling"
    if not has_compiler():
        return False, "not compiled: no C++ compiler was found (set CXX, or install g++)"
    return True, f"compiled: {flops:.1e} FLOPs of training"
