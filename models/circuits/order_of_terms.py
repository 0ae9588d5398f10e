"""Loss by order of terms: how far the direct path, heads, virtual heads and so on, and single paths, lower it.

Source: Elhage et al. 2021, "term importance analysis".
"""

import math
from collections import defaultdict
from collections.abc import Container
from dataclasses import dataclass
from itertools import chain

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.circuits.paths import HeadPath, head_paths, paths_by_order, virtual_head_paths
from headstream.models.frozen import freeze_run
from headstream.models.stream_losses import stream_losses
from headstream.models.transformer import Transformer


@dataclass(frozen=True)
class Term:
    """Effect of all paths of an order, of one path, or (with neither) of all that start at feed-forward layers."""

    order: int | None
    path: HeadPath | None
    loss_nats: float  # with this term and those of lower order alone
    loss_effect_nats: float  # what lower orders leave minus that; may be negative. Nothing leaves log d_vocab
    removal_effect_nats: float  # loss without this term alone, minus the true loss; NaN for one path
    logit_share: float  # of the (uncapped) logits' variance over the vocabulary, by covariance; sums to 1 over orders


Key = int | HeadPath | None  # an order, a path, or all that starts at feed-forward layers
_Row = Float[Tensor, "3"]  # losses with the term and without it, covariance with the logits, summed over positions


@torch.inference_mode()
def order_of_terms(
    model: Transformer, sequences: Int[Tensor, "batch pos"], virtual_heads: Container[HeadPath]
) -> list[Term]:
    """Effects of every order, of every head's own path, and of the wanted virtual heads.

    Paths that start at feed-forward layers come on top of all orders. The bias of logits goes with order 0.
    """
    sums: dict[Key, _Row] = defaultdict(lambda: torch.zeros(3, dtype=torch.float64))
    variance = 0.0
    for batch in batches(model, sequences):
        rows, of_batch = _sums(model, batch, virtual_heads)
        variance += of_batch
        for key, row in rows.items():
            sums[key] += row

    n_targets, n_layers = sequences[:, 1:].numel(), len(model.layers)
    losses = {key: (row[:2] / n_targets).tolist() for key, row in sums.items()}
    true_loss, _ = losses.get(None, losses[n_layers])

    def term(key: Key) -> Term:
        order = len(key) if isinstance(key, tuple) else key
        lower = n_layers if order is None else order - 1
        left = losses[lower][0] if lower >= 0 else math.log(model.d_vocab)
        with_it, without = losses[key]
        return Term(
            order=order,
            path=key if isinstance(key, tuple) else None,
            loss_nats=with_it,
            loss_effect_nats=left - with_it,
            removal_effect_nats=without - true_loss,
            logit_share=sums[key][2].item() / variance if variance else math.nan,
        )

    return [term(key) for key in sums]


def _sums(
    model: Transformer, batch: Int[Tensor, "batch pos"], wanted: Container[HeadPath]
) -> tuple[dict[Key, _Row], float]:
    """Rows of all terms, and the variance of the logits summed over positions and tokens."""
    run = freeze_run(model, batch[:, :-1])
    logits = run.trace.logits if model.architecture.logit_cap is None else model.linear_logits(run.trace.residual_final)
    centred = logits - logits.mean(-1, keepdim=True)
    reader = centred @ model.W_U.T  # gives a part's covariance with the logits without its logits

    def losses(streams: list[Tensor]) -> list[float]:
        return stream_losses(model, torch.stack(streams), batch[:, 1:]).double().sum((1, 2)).tolist()

    expanded = paths_by_order(run)
    up_to = [torch.zeros_like(expanded.orders[0]), *expanded.orders.cumsum(0)]  # up_to[k]: fewer than k heads
    parts: dict[Key, Tensor] = dict(enumerate(expanded.orders))
    whole = up_to[-1]
    if expanded.feed_forward is not None:
        parts[None], whole = expanded.feed_forward, whole + expanded.feed_forward
    without = dict(zip(parts, losses([whole - part for part in parts.values()]), strict=True))
    parts |= dict(chain(head_paths(run), virtual_head_paths(run, wanted)))
    below = {key: up_to[-1 if key is None else len(key) if isinstance(key, tuple) else key] for key in parts}
    with_it = losses([below[key] + part for key, part in parts.items()])
    rows = {
        key: torch.tensor([loss, without.get(key, math.nan), (part * reader).sum().item()], dtype=torch.float64)
        for (key, part), loss in zip(parts.items(), with_it, strict=True)
    }
    if model.b_U is not None:
        rows[0][2] += (centred * model.b_U).sum().item()
    return rows, centred.square().sum().item()
