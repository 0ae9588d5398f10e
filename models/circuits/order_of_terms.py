"""How much the paths of each order, and single paths, lower the loss: direct path, heads, virtual heads and so on.

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
from torch.nn import functional as F

from models.batching import batches
from models.circuits.frozen import freeze_run
from models.circuits.paths import Path, head_paths, paths_by_order, virtual_head_paths
from models.transformer import Transformer


@dataclass(frozen=True)
class Term:
    """Effect of all paths of an order, of one path, or (with neither) of all that start at feed-forward layers."""

    order: int | None
    path: Path | None
    loss_nats: float  # with this term and those of lower order alone
    loss_effect_nats: float  # what lower orders leave minus that; may be negative. Nothing leaves log d_vocab
    removal_effect_nats: float  # loss without this term alone, minus the true loss; NaN for one path
    logit_share: float  # of the logits' variance over the vocabulary, by covariance: shares of all orders sum to 1


Key = int | Path | None  # an order, a path, or all that starts at feed-forward layers
Row = Float[Tensor, "3"]  # losses with the term and without it, covariance with the logits, summed over positions


@torch.inference_mode()
def order_of_terms(
    model: Transformer, sequences: Int[Tensor, "batch pos"], virtual_heads: Container[Path]
) -> list[Term]:
    """Effects of every order, of every head's own path, and of the wanted virtual heads.

    Paths that start at feed-forward layers come on top of all orders. The bias of logits goes with order 0.
    """
    sums: dict[Key, Row] = defaultdict(lambda: torch.zeros(3, dtype=torch.float64))
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


def _sums(model: Transformer, batch: Int[Tensor, "batch pos"], wanted: Container[Path]) -> tuple[dict[Key, Row], float]:
    """Rows of all terms, and the variance of the logits summed over positions and tokens."""
    targets = batch[:, 1:].flatten()
    run = freeze_run(model, batch[:, :-1])
    centred = run.trace.logits - run.trace.logits.mean(-1, keepdim=True)
    reader = centred @ model.W_U.T  # gives a part's covariance with the logits without its logits

    def loss(stream: Tensor) -> float:
        return F.cross_entropy(model.unembed(stream).flatten(0, 1), targets, reduction="sum").item()

    def row(part: Tensor, below: Tensor, rest: Tensor | None = None) -> Row:
        without = math.nan if rest is None else loss(rest)
        return torch.tensor([loss(below + part), without, (part * reader).sum().item()], dtype=torch.float64)

    paths = paths_by_order(run)
    up_to = [torch.zeros_like(paths.orders[0]), *paths.orders.cumsum(0)]  # up_to[k]: fewer than k heads
    whole = up_to[-1] if paths.feed_forward is None else up_to[-1] + paths.feed_forward
    rows: dict[Key, Row] = {k: row(part, up_to[k], whole - part) for k, part in enumerate(paths.orders)}
    if model.b_U is not None:
        rows[0][2] += (centred * model.b_U).sum().item()
    if paths.feed_forward is not None:
        rows[None] = row(paths.feed_forward, up_to[-1], up_to[-1])
    for path, part in chain(head_paths(run), virtual_head_paths(run, wanted)):
        rows[path] = row(part, up_to[len(path)])
    return rows, centred.square().sum().item()
