"""Compiles code for trainings before they begin, while text is read."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.training.device import Numerics, prepare_process
from headstream.tasks.training.loop import next_token_loss


@dataclass(frozen=True)
class TrainingKind:
    """The settings that trainings with the same compiled code share."""

    architecture: Architecture  # with one layer for each number of heads

    batch_size: int
    numerics: Numerics


def kind_of(architecture: Architecture, config: TrainingConfig, numerics: Numerics) -> TrainingKind:
    """The kind of a training."""
    heads = tuple(sorted(set(architecture.heads_per_layer)))
    one_of_each = {"n_layers": len(heads), "n_heads": heads, "d_head": architecture.head_width}
    return TrainingKind(architecture.model_copy(update=one_of_each), config.batch_size, numerics)


def compile_kind(
    kind: TrainingKind, d_vocab: int, on_progress: Callable[[float], None] = lambda fraction: None
) -> None:
    """Compile the code of a kind of training by a step on made-up text, so that it is in the compiler's cache."""
    from headstream.tasks.training.compiling import compile_layers, compiled_cross_entropy  # loads torch's compiler

    a, numerics = kind.architecture, kind.numerics
    prepare_process(numerics.threads)
    model = Transformer(a, d_vocab).initialize(torch.Generator().manual_seed(0)).to(numerics.device)
    compile_layers(model, numerics.device)
    windows = torch.zeros(kind.batch_size, a.n_ctx + 1, dtype=torch.int64, device=numerics.device)
    noise = None
    if a.gates == "hard_concrete":
        noise = torch.full((kind.batch_size, sum(a.heads_per_layer)), 0.5, device=numerics.device)
    next_token_loss(model, windows, numerics.precision, noise, [], compiled_cross_entropy(numerics.device)).backward()
