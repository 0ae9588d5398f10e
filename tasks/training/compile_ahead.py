"""Compiles code for a kind of training, before such trainings begin."""

from collections.abc import Callable

import torch

from headstream.models.transformer import Transformer
from headstream.tasks.training.compiled_kind import Kind
from headstream.tasks.training.device import prepare_process
from headstream.tasks.training.loop import next_token_loss


def compile_kind(kind: Kind, d_vocab: int, on_progress: Callable[[float], None] = lambda fraction: None) -> None:
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
