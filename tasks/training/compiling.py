"""torch.compile as training uses it: one layer at a time, so that what was compiled serves every depth.

A layer's code depends on its own shape alone, and the loss's on the logits': models of a grid that differ in depth or
seed share it through the compiler's cache. Compiling whole models would save another tenth of each step, but takes
half a minute for each architecture.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch._dynamo

from models.architecture import Architecture
from models.transformer import Transformer
from tasks.study.training_config import TrainingConfig
from tasks.training.device import Numerics, prepare_process
from tasks.training.loop import CrossEntropy, mean_cross_entropy, next_token_loss

MOST_KINDS = 64  # of layers in a model: each is compiled, and torch's own limit is 8
ON_CPU: dict[str, Any] = {"cpp_wrapper": True}  # all kernels of a graph in one file: a third less compiling

torch._dynamo.config.recompile_limit = MOST_KINDS


def compile_layers(model: Transformer, device: str) -> None:
    """Have each layer compiled when it first runs."""
    for layer in model.layers:
        layer.compile(dynamic=False, options=_options(device))


def compiled_cross_entropy(device: str) -> CrossEntropy:
    """`mean_cross_entropy`, compiled when it first runs."""
    return torch.compile(mean_cross_entropy, dynamic=False, options=_options(device))


def _options(device: str) -> dict[str, Any] | None:
    return ON_CPU if device == "cpu" else None


@dataclass(frozen=True)
class Kind:
    """What trainings that run the same compiled code have in common."""

    architecture: Architecture  # with one layer for each number of heads
    batch_size: int
    numerics: Numerics


def kind_of(architecture: Architecture, config: TrainingConfig, numerics: Numerics) -> Kind:
    """The kind of a training."""
    heads = tuple(sorted(set(architecture.heads_per_layer)))
    one_of_each = {"n_layers": len(heads), "n_heads": heads, "d_head": architecture.head_width}
    return Kind(architecture.model_copy(update=one_of_each), config.batch_size, numerics)


def compile_kind(kind: Kind, d_vocab: int, on_progress: Callable[[float], None] = lambda fraction: None) -> None:
    """Compile what trainings of a kind run, by a step on made-up text, so that they find it in the compiler's cache."""
    a, numerics = kind.architecture, kind.numerics
    prepare_process(numerics.threads)
    model = Transformer(a, d_vocab).initialize(torch.Generator().manual_seed(0)).to(numerics.device)
    compile_layers(model, numerics.device)
    windows = torch.zeros(kind.batch_size, a.n_ctx + 1, dtype=torch.int64, device=numerics.device)
    noise = None
    if a.gates == "hard_concrete":
        noise = torch.full((kind.batch_size, sum(a.heads_per_layer)), 0.5, device=numerics.device)
    next_token_loss(model, windows, numerics.precision, noise, [], compiled_cross_entropy(numerics.device)).backward()
    on_progress(1.0)
