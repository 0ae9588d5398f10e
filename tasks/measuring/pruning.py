"""Pruning of a model at its last checkpoint: gates, pruning curves, and physically smaller models."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.hard_concrete import gates_without_noise, open_probability
from headstream.models.heads.gate_training import train_gates
from headstream.models.heads.head import HeadSet, heads_of, mask_without, removed_heads
from headstream.models.heads.references import mean_z
from headstream.models.heads.removal import remove_heads, why_no_removal
from headstream.models.losses import sequence_losses
from headstream.models.nodes import Head
from headstream.models.transformer import Transformer
from headstream.tasks.measuring.budgets import windows_within_budget
from headstream.tasks.measuring.head_rows import importance_rows
from headstream.tasks.measuring.pruned_models import SmallerModel, choose, keep_models
from headstream.tasks.measuring.pruning_curves import (
    GATES,
    RETRAINED,
    Curve,
    CurveKey,
    Subject,
    curve_rows,
    measure_curves,
    plan_curves,
    relative_increases,
    retrained_curve,
)
from headstream.tasks.measuring.trained_model import Rows, TrainedModel
from headstream.tasks.study.analyses.pruning_config import PruningConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.training_batches import Batches

# Curves with models worth keeping, beside the retrained:
KEPT = (CurveKey("one_shot", "ablation_mean"), CurveKey("iterative", "ablation_mean"), GATES)


@dataclass(frozen=True)
class Gates:
    """Gates trained under one penalty, a tensor a layer."""

    penalty_nats: float
    log_alpha: list[Float[Tensor, "_"]]

    @property
    def values(self) -> list[Float[Tensor, "_"]]:
        """The factor of each head's output."""
        return [gates_without_noise(own) for own in self.log_alpha]

    @property
    def open_probabilities(self) -> list[Float[Tensor, "_"]]:
        """Chance that each gate is not 0 while it is sampled."""
        return [open_probability(own) for own in self.log_alpha]

    @property
    def closed(self) -> HeadSet:
        """Heads whose output is multiplied by 0."""
        gates = [(i, head, gate) for i, own in enumerate(self.values) for head, gate in enumerate(own.tolist())]
        return frozenset(Head(i, head) for i, head, gate in gates if gate == 0)

    @property
    def n_open(self) -> int:
        """The number of heads left."""
        return sum(map(len, self.log_alpha)) - len(self.closed)


def measure_pruning(config: PruningConfig, trained: TrainedModel) -> None:
    """Write gates, gate_sweeps, importance (method gate), pruning, and pruned_models with their checkpoints.

    A model without heads has none of it, and one of which heads can't be removed (`why_no_removal`).

    Cost: orders by ablation rerun later layers for each head that is left `max_points` times at most, and all else
    takes some passes each time: with heads times sequences, which `max_reruns` bounds, times a pass. Checkpoints don't
    count.

    Raises:
        UserError: the text is too short for one sequence.
    """
    tokens, model = trained.tokens, trained.model
    if not heads_of(model) or why_no_removal(model.architecture):
        return
    n_ctx, n_heads = model.architecture.n_ctx, len(heads_of(model))
    windows, reference_windows = (
        windows_within_budget(most, config.max_reruns, n_heads) for most in (config.windows, config.reference_windows)
    )
    text, documents = trained.evaluation_text(windows)
    reference = trained.reference_text(reference_windows).sequences
    subject = Subject(model, text, documents, reference, mean_z(model, reference))

    gates = _trained_gates(config, model, islice(training_windows(config, tokens, n_ctx), config.gate_steps))
    trained.on_progress(0.2)
    gate_scores = half_open(gates, n_heads).open_probabilities
    plans = plan_curves(subject, config, gate_scores) | {GATES: [own.closed - removed_heads(model) for own in gates]}
    trained.on_progress(0.5)
    curves = measure_curves(subject, plans)
    trained.on_progress(0.7)
    curves[RETRAINED], retrained = retrained_curve(subject, config, training_windows(config, tokens, n_ctx))
    trained.on_progress(0.9)

    smaller = chain(_smaller_models(subject, config, curves), retrained, _without_removed_heads(model))
    tables: dict[str, Rows] = {
        "gates": [row for own in gates for row in _gate_rows(own)],
        "gate_sweeps": [_sweep_row(subject, own) for own in gates],
        "importance": importance_rows("gate", gate_scores),
        "pruning": curve_rows(subject, curves),
        "pruned_models": keep_models(smaller, model, text, trained.training_folder, trained.folder, config.repeats),
    }
    for name, rows in tables.items():
        if rows:
            trained.write(name, rows)


def training_windows(config: PruningConfig, tokens: Tokens, n_ctx: int) -> Iterator[Int[Tensor, "batch pos"]]:
    """Batches of training text without end, the same ones at every call."""
    batches = Batches(tokens, n_ctx=n_ctx, batch_size=config.batch_size, seed=config.seed)
    return (torch.from_numpy(batches.batch(step)) for step in count())


def _trained_gates(
    config: PruningConfig, model: Transformer, windows: Iterable[Int[Tensor, "batch pos"]]
) -> list[Gates]:
    """Gates for each penalty; those of heads that training removed stay closed."""
    there, penalties = mask_without(model, removed_heads(model)), list(dict.fromkeys(config.gate_lambdas))
    learned = train_gates(model, windows, penalties, config.gate_rate, torch.Generator().manual_seed(config.seed))
    return [
        Gates(penalty, [own.where(left > 0, -torch.inf) for own, left in zip(log_alpha, there, strict=True)])
        for penalty, log_alpha in zip(penalties, learned, strict=True)
    ]


def half_open(gates: Sequence[Gates], n_heads: int) -> Gates:
    """The gates of which nearest to half of so many heads are open; of equals the first."""
    return min(gates, key=lambda own: abs(2 * own.n_open - n_heads))


def _smaller_models(
    subject: Subject, config: PruningConfig, curves: Mapping[CurveKey, Curve]
) -> Iterator[SmallerModel]:
    """The models worth keeping of curves that need no training."""
    removed = removed_heads(subject.model)
    for key in KEPT:
        if key in curves:
            chosen = choose(relative_increases(curves[key]), len(heads_of(subject.model)), config.keep)
            for pruned in (point.pruned for point in curves[key]):
                if as_ := chosen.get(len(pruned)):
                    mask = mask_without(subject.model, pruned | removed)
                    smaller = remove_heads(subject.model, mask, subject.fill)
                    yield SmallerModel(*key[:2], len(pruned), as_, smaller, (mask, subject.fill))


def _without_removed_heads(model: Transformer) -> Iterator[SmallerModel]:
    """The model without the heads that training removed, if there are any."""
    if removed := removed_heads(model):
        mask, by = mask_without(model, removed), "gate" if model.architecture.gates == "hard_concrete" else "gradient"
        yield SmallerModel("training", by, len(removed), ["trained"], remove_heads(model, mask), (mask, None))


def _gate_rows(gates: Gates) -> list[dict[str, Any]]:
    columns = zip(gates.log_alpha, gates.open_probabilities, gates.values, strict=True)
    return [
        {
            "penalty_nats": gates.penalty_nats,
            "layer": layer,
            "head": head,
            "log_alpha": log_alpha,
            "open_probability": probability,
            "gate": gate,
        }
        for layer, own in enumerate(columns)
        for head, (log_alpha, probability, gate) in enumerate(zip(*(column.tolist() for column in own), strict=True))
    ]


def _sweep_row(subject: Subject, gates: Gates) -> dict[str, Any]:
    """A row of `gate_sweeps`; closed heads write nothing."""
    model, text = subject.model, subject.text
    losses = {
        "intact": sequence_losses(model, text),
        "gated": sequence_losses(model, text, gates.values),
        "folded": sequence_losses(remove_heads(model, gates.values), text),
        "binarised": sequence_losses(model, text, mask_without(model, gates.closed)),
    }
    return {
        "penalty_nats": gates.penalty_nats,
        "n_open": gates.n_open,
        "expected_open": torch.cat(gates.open_probabilities).sum().item(),
        **{f"{name}_loss_nats": loss.mean().item() for name, loss in losses.items()},
    }
