"""Costs of a pass of a transformer as its sizes grow: seconds, floating-point operations and bytes."""

import os
import statistics
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from headstream.models.architecture import Architecture
from headstream.models.flops import forward_backward_flops, forward_flops
from headstream.models.transformer import Transformer
from headstream.tasks.results.tables import write_table
from headstream.tasks.study.costs_config import CostsConfig
from headstream.tasks.training.device import prepare_process

D_VOCAB = 64  # few, so that the unembedding hardly counts


def time_passes(
    config: CostsConfig, study: str, folder: Path, on_progress: Callable[[float], None] = lambda fraction: None
) -> dict[str, object]:
    """Write costs, of one sequence on one CPU thread; a study without sizes has none.

    Passes are timed in turns, so that a slow spell of the machine slows them all.
    """
    prepare_process(threads=1)  # as in training
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else the profiler writes to stderr whenever it starts and stops
    passes = [
        Pass(axis, architecture, name)
        for axis, architectures in architectures_of(config).items()
        for architecture in architectures
        for name in ("forward", "forward_backward")
    ]
    seconds: list[list[float]] = [[] for _ in passes]
    for repeat in range(1 + config.repeats):
        for own, timed in zip(seconds, passes, strict=True):
            own.append(timed.seconds())
        on_progress((1 + repeat) / (2 + config.repeats))
    rows = [
        {"study": study, **timed.row(), "seconds": statistics.median(own), "seconds_by_round": own}
        for (_, *own), timed in zip(seconds, passes, strict=True)  # the first time is slower
    ]
    if rows:
        write_table(folder, "costs", rows)
    on_progress(1.0)
    return {"study": study, "passes": len(rows)}


def architectures_of(config: CostsConfig) -> dict[str, list[Architecture]]:
    """The models of each series, by what varies in it."""
    narrow, wide = config.narrow_d_model, config.base_d_model
    full = [_architecture(n, narrow) for n in config.n_ctx if n <= config.max_full_n_ctx]
    local = [
        _architecture(n, narrow, attention="local", attention_window=config.attention_window) for n in config.n_ctx
    ]
    return {
        "n_ctx": full + local,
        "d_model": [_architecture(config.base_n_ctx, d_model) for d_model in config.d_model],
        "n_heads": [_architecture(n, wide, n_heads=n_heads) for n in config.heads_n_ctx for n_heads in config.n_heads],
    }


def _architecture(n_ctx: int, d_model: int, **others: Any) -> Architecture:
    return Architecture(**{"n_layers": 1, "n_heads": 1, "n_ctx": n_ctx, "d_model": d_model, **others})


class Pass:
    """A pass of one sequence through an untrained model, of a series in which one size, the axis, varies."""

    def __init__(self, axis: str, architecture: Architecture, name: str) -> None:
        self.axis, self.architecture, self.name = axis, architecture, name
        self.backward = name == "forward_backward"
        generator = torch.Generator().manual_seed(0)
        self.model = Transformer(architecture, D_VOCAB).initialize(generator)
        self.tokens = torch.randint(D_VOCAB, (1, architecture.n_ctx + 1), generator=generator)

    def run(self) -> None:
        """Logits; in a pass forward and backward, gradients of the loss, too."""
        with torch.set_grad_enabled(self.backward):
            logits = self.model(self.tokens[:, :-1])
            if self.backward:
                F.cross_entropy(logits[0], self.tokens[0, 1:]).backward()

    def seconds(self) -> float:
        """Processor time of a run now, which other work on the machine changes less than wall time."""
        start = time.process_time()
        self.run()
        seconds = time.process_time() - start
        self.model.zero_grad()
        return seconds

    def peak_bytes(self) -> int:
        """The most bytes held at once: weights, and all that torch allocates, within its operations as well."""
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiler:
            self.run()
        self.model.zero_grad()
        in_order = sorted(profiler.events(), key=lambda event: event.time_range.end)
        held = sum(parameter.nbytes for parameter in self.model.parameters())
        return max(accumulate((event.self_cpu_memory_usage for event in in_order), initial=held))

    def row(self) -> dict[str, Any]:
        """A row of `costs`, but for study and seconds."""
        a = self.architecture
        with FlopCounterMode(display=False) as counter:
            self.run()
        self.model.zero_grad()
        formula = forward_backward_flops if self.backward else forward_flops
        return {
            "axis": self.axis,
            "config_id": f"{a.attention} n_ctx={a.n_ctx} d_model={a.d_model} n_heads={a.n_heads}",
            "pass": self.name,
            "attention": a.attention,
            "attention_window": a.attention_window,
            "n_ctx": a.n_ctx,
            "d_model": a.d_model,
            "n_heads": a.n_heads,
            "flops_counted": counter.get_total_flops(),
            "flops_formula": formula(a, D_VOCAB, a.n_ctx),
            "bytes": self.peak_bytes(),
        }
