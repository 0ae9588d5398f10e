"""Models with heads physically removed: which are worth keeping, their checkpoints, their size and speed."""

import statistics
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from headstream.models.losses import sequence_losses
from headstream.models.parameters import count_parameters
from headstream.models.transformer import Fill, HeadMask, Transformer
from headstream.tasks.measuring.trained_model import Rows
from headstream.tasks.training.checkpoints import (
    checkpoint_bytes,
    checkpoint_steps,
    load_model,
    save_checkpoint,
    tokens_at,
    write_model_card,
)

LIMITS = {"within 1 %": 0.01, "within 5 %": 0.05}  # of the relative increase of the loss
TIMED = {1: 10, 32: 1}  # sequences in a forward pass, and how many times as often it is timed: short ones are noisier
MIN_TURNS, ENOUGH_SECONDS = 2, 1.0  # after which no more turns are timed
N_COMPARED = 4  # sequences on which logits are compared


@dataclass(frozen=True)
class SmallerModel:
    """A model to keep, and why."""

    procedure: str
    order_method: str
    n_pruned: int
    chosen_as: Sequence[str]
    model: Transformer
    masked: tuple[HeadMask, Fill | None] | None  # by which the intact model has the same logits; None if trained on

    @property
    def checkpoint(self) -> str:
        """Folder within the artifact."""
        return f"pruned/{self.procedure}-{self.order_method}-{self.n_pruned}"


def choose(relative_increases: Mapping[int, float], n_heads: int, keep: Collection[str]) -> dict[int, list[str]]:
    """Choose the numbers of pruned heads on a curve that are worth a model of their own, and as what (of `keep`).

    Half of them, and the most that can be removed at less than each limit's increase, even if fewer cost more.

    >>> choose({0: 0.0, 1: 0.002, 2: 0.03, 3: 0.04, 4: 0.9}, n_heads=4, keep=["within 1 %", "within 5 %", "half"])
    {1: ['within 1 %'], 3: ['within 5 %'], 2: ['half']}
    """
    chosen: dict[int, list[str]] = {}
    most = {
        name: max((n for n, increase in relative_increases.items() if increase < limit), default=0)
        for name, limit in LIMITS.items()
    }
    for name, n in (most | {"half": n_heads // 2}).items():
        if name in keep and n > 0 and n in relative_increases:
            chosen.setdefault(n, []).append(name)
    return chosen


@torch.inference_mode()
def keep_models(
    smaller: Iterable[SmallerModel],
    intact: Transformer,
    text: Int[Tensor, "batch pos"],
    training_folder: Path,
    folder: Path,
    repeats: int,
) -> Rows:
    """Write checkpoints, and return rows of `pruned_models` about what is read back from them, one at a time."""
    before = {
        "intact_parameters": count_parameters(intact),
        "intact_checkpoint_bytes": checkpoint_bytes(training_folder, checkpoint_steps(training_folder)[-1]),
        "intact_loss_nats": sequence_losses(intact, text).mean().item(),
    }
    rows = []
    for kept in smaller:
        target = folder / kept.checkpoint
        target.mkdir(parents=True)
        write_model_card(target, kept.model, {0: tokens_at(training_folder)[checkpoint_steps(training_folder)[-1]]})
        save_checkpoint(target, kept.model, 0)
        model = load_model(target, 0).to(intact.W_E.device)
        row = before | {
            "procedure": kept.procedure,
            "order_method": kept.order_method,
            "n_pruned": kept.n_pruned,
            "heads_per_layer": list(model.architecture.heads_per_layer),
            "parameters": count_parameters(model),
            "checkpoint_bytes": checkpoint_bytes(target, 0),
            "logit_difference": _logit_difference(kept, model, intact, text[:N_COMPARED, :-1]),
            "loss_nats": sequence_losses(model, text).mean().item(),
            "checkpoint": kept.checkpoint,
        }
        for n, times in TIMED.items():
            seconds = _forward_seconds([intact, model], text[:, :-1], n, repeats * times)
            row |= dict(zip((f"intact_seconds_batch_{n}", f"seconds_batch_{n}"), seconds, strict=True))
        rows += [row | {"chosen_as": name} for name in kept.chosen_as]
    return rows


def _forward_seconds(
    models: Sequence[Transformer], tokens: Int[Tensor, "batch pos"], batch_size: int, repeats: int
) -> list[float]:
    """Median seconds of each model's forward pass of so many sequences, in turns: fewer where those take long."""
    device = models[0].W_E.device
    batch = tokens.repeat(-(-batch_size // len(tokens)), 1)[:batch_size].to(device)
    seconds: list[list[float]] = [[] for _ in models]
    begun = time.perf_counter()
    for turn in range(1 + repeats):  # the first is slower
        if turn > MIN_TURNS and time.perf_counter() - begun > ENOUGH_SECONDS:
            break
        for own, model in zip(seconds, models, strict=True):
            start = time.perf_counter()
            model(batch)
            if device.type == "cuda":
                torch.cuda.synchronize()
            own.append(time.perf_counter() - start)
    return [statistics.median(own[1:]) for own in seconds]


def _logit_difference(
    kept: SmallerModel, model: Transformer, intact: Transformer, tokens: Int[Tensor, "batch pos"]
) -> float | None:
    if kept.masked is None:
        return None
    tokens = tokens.to(intact.W_E.device)
    masked = intact(tokens, *kept.masked)
    return ((model(tokens) - masked).abs().max() / masked.std()).item()
