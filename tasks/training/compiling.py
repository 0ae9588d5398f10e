"""torch.compile for training: one layer at a time, so that compiled code serves every depth.

A layer's code depends only on its own shape, and the loss's on that of the logits, so models of a grid that differ in
depth or seed share it through the compiler's cache. Compiling whole models would save another tenth of each step, but
take half a minute for each architecture.
"""

from typing import Any

import torch
import torch._dynamo

from headstream.models.transformer import Transformer
from headstream.tasks.training import compiler_preload  # noqa: F401
from headstream.tasks.training.cross_entropy import CrossEntropy, mean_cross_entropy_in_one_pass

MAX_KINDS = 64  # of layers in a model: each is compiled, and torch's own limit is 8
# All kernels of a graph in one file take a third less time to compile. No precompiled headers: torch keeps them below
# /tmp, where anybody may plant some, and for a first architecture they take as long to compile as they save.
ON_CPU: dict[str, Any] = {"cpp_wrapper": True, "cpp_cache_precompile_headers": False}

torch._dynamo.config.recompile_limit = MAX_KINDS


def compile_layers(model: Transformer, device: str) -> None:
    """Have each layer compiled when it first runs, and what gives its trace when that first runs."""
    for layer in model.layers:
        layer.compile(dynamic=False, options=_options(device))
        layer.parts = torch.compile(layer.parts, dynamic=False, options=_options(device))  # type: ignore[method-assign]


def compiled_cross_entropy(device: str) -> CrossEntropy:
    """`mean_cross_entropy`, compiled when it first runs."""
    return torch.compile(mean_cross_entropy_in_one_pass, dynamic=False, options=_options(device))


def _options(device: str) -> dict[str, Any] | None:
    return ON_CPU if device == "cpu" else None
