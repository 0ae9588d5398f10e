"""Pruning with training in between: the heads that are left learn to do without the one that was removed."""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from models.heads.evidence import HeadScores
from models.heads.head import Head, heads_of, mask_without, removed_heads
from models.heads.pruning_orders import by_importance
from models.heads.removal import remove_heads
from models.losses import token_losses
from models.optimisers import rate_factor
from models.transformer import Fill, Transformer


def prune_and_retrain(
    model: Transformer,
    score: Callable[[Transformer, Fill], HeadScores],
    means: Callable[[Transformer], Fill],
    batches: Iterator[Int[Tensor, "batch pos"]],
    n_steps: int,
    rate: float,
) -> Iterator[tuple[Head, Transformer]]:
    """Prune head after head: each one by its place in the original model, and the smaller model after retraining.

    The least important head is removed first. Scores and means are those of the model that is left.
    """
    places = heads_of(model)
    model = remove_heads(model, mask_without(model, removed_heads(model)))  # which would learn to write again
    while places:
        fill = means(model)
        head = by_importance(score(model, fill), heads_of(model))[0]
        place = places.pop(heads_of(model).index(head))
        model = remove_heads(model, mask_without(model, [head]), fill)
        retrain(model, batches, n_steps, rate)
        yield place, model


def retrain(model: Transformer, batches: Iterator[Int[Tensor, "batch pos"]], n_steps: int, rate: float) -> None:
    """Train a model on, in place: AdamW without decay, its rate falling to 0 by a cosine."""
    model.requires_grad_(True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0, fused=True)
    for step in range(n_steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * rate_factor(step, n_steps, 0, 0.0)
        batch = next(batches).to(model.W_E.device)
        token_losses(model(batch[:, :-1]), batch[:, 1:]).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    model.requires_grad_(False)
