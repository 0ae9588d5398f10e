"""Pruning curves: which heads go in which order, and what the model loses without them."""

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.clustered_errors import clustered_mean
from headstream.models.heads.head import HeadSet, heads_of, mask_without, removed_heads
from headstream.models.heads.importance_methods import head_scores
from headstream.models.heads.pruned_losses import losses_without
from headstream.models.heads.pruning_orders import (
    by_importance,
    iterative_order,
    prefixes,
    pruning_sizes,
    random_orders,
)
from headstream.models.heads.references import mean_z
from headstream.models.heads.removal import remove_heads
from headstream.models.heads.retraining import Retraining, prune_and_retrain
from headstream.models.heads.scoring_inputs import HeadScores, ScoringInputs
from headstream.models.losses import sequence_losses
from headstream.models.nodes import Head
from headstream.models.parameters import count_parameters
from headstream.models.transformer import Fill, HeadMask, Transformer
from headstream.tasks.measuring.pruned_models import SmallerModel, choose
from headstream.tasks.measuring.trained_model import Rows
from headstream.tasks.study.analyses.pruning_config import PruningConfig

# Methods by which heads are scored anew as they go; those of a group are computed together:
ITERATIVE = (("michel_paper", "michel_code", "hf_bertology", "taylor_signed"), ("ablation_zero",), ("ablation_mean",))
RETRAIN_BY = "michel_paper"


@dataclass(frozen=True)
class Subject:
    """A model, the text that it is judged by, and the text that heads are chosen by and their means taken on."""

    model: Transformer
    text: Int[Tensor, "batch pos"]
    documents: Int[Tensor, "batch"]  # that the text is from
    reference: Int[Tensor, "reference_batch pos"]
    fill: Fill

    def scores(self, methods: Collection[str], pruned: HeadSet = frozenset()) -> dict[str, HeadScores]:
        """Importance of the heads that are left, by method, as the smaller model without the others has it."""
        mask = mask_without(self.model, pruned | removed_heads(self.model))
        kept = [own.nonzero().flatten() for own in mask]
        smaller = remove_heads(self.model, mask, self.fill) if pruned or removed_heads(self.model) else self.model
        fill = torch.cat([own[heads] for own, heads in zip(self.fill, kept, strict=True)])
        inputs = ScoringInputs(smaller, self.reference, fill.split(list(smaller.architecture.heads_per_layer)))
        return {method: _in_place(head_scores(method, inputs), mask) for method in methods}


def _in_place(scores: HeadScores, mask: HeadMask) -> HeadScores:
    """Scores of the heads that a mask leaves, where they are in the whole model; NaN for the others."""
    left = torch.cat([*mask]).bool().cpu()
    placed = torch.full(left.shape, torch.nan, dtype=torch.float64)
    placed[left] = torch.cat(scores)
    return list(placed.split([len(own) for own in mask]))


class CurveKey(NamedTuple):
    """The columns of `pruning` that identify a curve."""

    procedure: str
    order_method: str
    draw: int = 0


class Point(NamedTuple):
    """A set of pruned heads, and the loss of each sequence without them."""

    pruned: HeadSet
    losses: Float[Tensor, "batch"]


Curve = list[Point]  # from no heads pruned
GATES, RETRAINED = CurveKey("gates", "gate"), CurveKey("iterative_retrain", RETRAIN_BY)


def plan_curves(subject: Subject, config: PruningConfig, gate_scores: HeadScores) -> dict[CurveKey, list[HeadSet]]:
    """The sets of heads on each curve that is an order of the model as it is.

    Cost, in passes of the reference text: `max_points` backward passes for each gradient method, and for each of the
    two ablations as many times as many reruns of later layers as heads are left.
    """
    heads = heads_of(subject.model)
    sizes = pruning_sizes(len(heads), config.max_points)
    scores = subject.scores(config.methods) | {"gate": gate_scores}
    defined = [method for method, own in scores.items() if not torch.cat([*own]).isnan().all()]
    orders = {CurveKey("one_shot", method): by_importance(scores[method], heads) for method in defined}
    for group in ITERATIVE:
        anew = cache(partial(subject.scores, group))  # orders by methods that agree ask for the same
        for method in (method for method in group if method in defined and method in config.iterative_methods):
            order = iterative_order(scores[method], partial(_scores_by, anew, method), heads, sizes)
            orders[CurveKey("iterative", method)] = order
    generator = torch.Generator().manual_seed(config.seed)
    for draw, order in enumerate(random_orders(heads, config.random_orders, generator)):
        orders[CurveKey("random", "random", draw)] = order
    return {key: prefixes(order, sizes) for key, order in orders.items()}


def _scores_by(anew: Callable[[HeadSet], dict[str, HeadScores]], method: str, pruned: HeadSet) -> HeadScores:
    return anew(pruned)[method]


def measure_curves(subject: Subject, plans: Mapping[CurveKey, Sequence[HeadSet]]) -> dict[CurveKey, Curve]:
    """The curves; of a plan's sets that prune as many heads, the one that costs least."""
    every = {frozenset[Head](), *(pruned for plan in plans.values() for pruned in plan)}
    losses = losses_without(subject.model, subject.text, subject.fill, every)
    curves = {}
    for key, plan in plans.items():
        by_cost = sorted([frozenset[Head](), *plan], key=lambda pruned: -losses[pruned].mean())
        cheapest = {len(pruned): pruned for pruned in by_cost}
        curves[key] = [Point(cheapest[n], losses[cheapest[n]]) for n in sorted(cheapest)]
    return curves


def retrained_curve(
    subject: Subject, config: PruningConfig, windows: Iterator[Int[Tensor, "batch pos"]]
) -> tuple[Curve, list[SmallerModel]]:
    """The loss if the model trains on after each head that goes, and the models worth keeping."""
    curve = [Point(frozenset(), sequence_losses(subject.model, subject.text))]
    models: dict[int, Transformer] = {}
    chosen: dict[int, list[str]] = {}
    steps = prune_and_retrain(
        subject.model,
        lambda model, fill: head_scores(RETRAIN_BY, ScoringInputs(model, subject.reference, fill)),
        lambda model: mean_z(model, subject.reference),
        Retraining(windows, config.retrain_steps, config.retrain_rate),
        pruning_sizes(len(heads_of(subject.model)), config.max_points),
    )
    for gone, model in steps:
        curve.append(Point(gone, sequence_losses(model, subject.text)))
        chosen = choose(relative_increases(curve), len(heads_of(subject.model)), config.keep)
        models |= {len(gone): model}
        models = {n: kept for n, kept in models.items() if n in chosen}  # a new best is best for good
    return curve, [SmallerModel(*RETRAINED[:2], n, names, models[n], None) for n, names in chosen.items()]


def relative_increases(curve: Curve) -> dict[int, float]:
    """By how much the loss rises over the intact model's, as a fraction of it, by number of heads pruned."""
    intact = curve[0].losses.mean().item()
    return {len(pruned): losses.mean().item() / intact - 1 for pruned, losses in curve}


def curve_rows(subject: Subject, curves: Mapping[CurveKey, Curve]) -> Rows:
    """Rows of `pruning`."""
    parameters, n_heads, rows = _parameters_left(subject), len(heads_of(subject.model)), []
    for key, curve in curves.items():
        losses = torch.stack([point.losses for point in curve])
        effects, increases = clustered_mean(losses - losses[0], subject.documents), relative_increases(curve)
        low, high = effects.interval()
        for i, pruned in enumerate(point.pruned for point in curve):
            went = pruned - curve[i - 1].pruned if i and key != GATES else frozenset()  # gates close together
            last = next(iter(went)) if len(went) == 1 else None
            rows.append(
                key._asdict()
                | {
                    "n_pruned": len(pruned),
                    "layer": last and last.layer,
                    "head": last and last.head,
                    "fraction_pruned": len(pruned) / n_heads,
                    "loss_nats": losses[i].mean().item(),
                    "loss_effect_nats": effects.mean[i].item(),
                    "ci_low_nats": low[i].item(),
                    "ci_high_nats": high[i].item(),
                    "relative_increase": increases[len(pruned)],
                    "parameters": parameters(pruned),
                }
            )
    return rows


def _parameters_left(subject: Subject) -> Callable[[HeadSet], int]:
    """Numbers in the model without some heads: how many are gone of each layer decides."""
    removed = removed_heads(subject.model)
    model, fill = copy.deepcopy(subject.model).to("meta"), [own.to("meta") for own in subject.fill]  # shapes, no data

    @cache
    def left(n_pruned: tuple[int, ...]) -> int:
        masks = [(torch.arange(len(own)) >= n).float() for own, n in zip(fill, n_pruned, strict=True)]
        return count_parameters(remove_heads(model, masks, fill))

    return lambda pruned: left(tuple(sum(head.layer == i for head in pruned | removed) for i in range(len(fill))))
