"""Pruning with training in between: the remaining heads learn to compensate for those that were removed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from headstream.models.heads.head import HeadSet, heads_of, mask_without, removed_heads
from headstream.models.heads.pruning_orders import by_importance
from headstream.models.heads.removal import remove_heads
from headstream.models.heads.scoring_inputs import HeadScores
from headstream.models.losses import token_losses
from headstream.models.optimisers import rate_factor
from headstream.models.transformer import Fill, Transformer


@dataclass(frozen=True)
class Retraining:
    """What a model learns from each time that heads went."""

    batches: Iterator[Int[Tensor, "batch pos"]]
    n_steps: int
    rate: float  # of AdamW, at first


def prune_and_retrain(
    model: Transformer,
    score: Callable[[Transformer, Fill], HeadScores],
    means: Callable[[Transformer], Fill],
    retraining: Retraining,
    sizes: Sequence[int],
) -> Iterator[tuple[HeadSet, Transformer]]:
    """Prune to each of `sizes` in turn; yields all heads pruned so far, and the smaller model after retraining.

    The least important heads are removed first. Scores and means are those of the remaining model.
    """
    places = heads_of(model)  # of the remaining heads, in the original model
    gone: HeadSet = frozenset()
    model = remove_heads(model, mask_without(model, removed_heads(model)))  # otherwise they would learn to write again
    for size in sizes:
        fill, left = means(model), heads_of(model)
        going = by_importance(score(model, fill), left)[: size - len(gone)]
        gone |= {places[left.index(head)] for head in going}
        places = [place for place in places if place not in gone]
        model = remove_heads(model, mask_without(model, going), fill)
        retrain(model, retraining)
        yield gone, model


def retrain(model: Transformer, retraining: Retraining) -> None:
    """Continue to train a model in place: AdamW without decay, its rate falling to 0 by a cosine."""
    model.requires_grad_(True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=retraining.rate, weight_decay=0, fused=True)
    for step in range(retraining.n_steps):
        for group in optimizer.param_groups:
            group["lr"] = retraining.rate * rate_factor(step, retraining.n_steps, 0, 0.0)
        batch = next(retraining.batches).to(model.W_E.device)
        token_losses(model(batch[:, :-1]), batch[:, 1:]).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    model.requires_grad_(False)
