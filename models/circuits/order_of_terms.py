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

from models.circuits.frozen import freeze_run
from models.circuits.paths import Path, head_paths, paths_by_order, virtual_head_paths
from models.heads.behaviour import batches
from models.transformer import Transformer


@dataclass(frozen=True)
class Term:
    """All paths of an order, one path, or (of neither) all paths that start at feed-forward layers."""

    order: int | None
    path: Path | None
    loss_nats: float  # with this term and those of lower order alone
    loss_effect_nats: float  # what lower orders leave minus that; may be negative. Nothing leaves log d_vocab
    removal_effect_nats: float  # loss without this term alone, minus the true loss; NaN for one path
    logit_share: float  # of the logits' variance over the vocabulary, by covariance: shares of all orders sum to 1


@torch.inference_mode()
def order_of_terms(
    model: Transformer, sequences: Int[Tensor, "batch pos"], virtual_heads: Container[Path] = ()
) -> list[Term]:
    """Effects of every order, of every head's own path, and of the wanted virtual heads.

    Paths that start at feed-forward layers come on top of all orders. The bias of logits goes with order 0.
    """
    sums: dict[int | Path | None, Tensor] = defaultdict(lambda: _row(0.0, 0.0, 0.0))
    variance, n_targets = 0.0, sequences[:, 1:].numel()
    for batch in batches(model, sequences):
        run = freeze_run(model, batch[:, :-1])
        paths, logits = paths_by_order(run), run.trace.logits
        centred = logits - logits.mean(-1, keepdim=True)
        reader = centred @ model.W_U.T  # a part's covariance with the logits, without its logits
        variance += centred.square().sum().item()

        def loss(stream: Tensor, targets: Tensor = batch[:, 1:]) -> float:
            return F.cross_entropy(model.unembed(stream).flatten(0, 1), targets.flatten(), reduction="sum").item()

        def covariance(part: Tensor, reader: Tensor = reader) -> float:
            return (part * reader).sum().item()

        up_to = paths.orders.cumsum(0)
        parts: list[tuple[int | None, Tensor]] = list(enumerate(paths.orders))
        with_it = list(up_to)
        if paths.feed_forward is not None:
            parts.append((None, paths.feed_forward))
            with_it.append(up_to[-1] + paths.feed_forward)
        for (order, part), stream in zip(parts, with_it, strict=True):
            sums[order] += _row(loss(stream), loss(with_it[-1] - part), covariance(part))
        if model.b_U is not None:
            sums[0][2] += (centred * model.b_U).sum().item()
        for path, part in chain(head_paths(run), virtual_head_paths(run, virtual_heads)):
            sums[path] += _row(loss(up_to[len(path) - 1] + part), math.nan, covariance(part))

    n_layers = len(model.layers)
    true_loss = sums[None if None in sums else n_layers][0] / n_targets

    def term(key: int | Path | None, total: Tensor) -> Term:
        order = len(key) if isinstance(key, tuple) else key
        lower = n_layers if order is None else order - 1
        left = float(sums[lower][0]) / n_targets if lower >= 0 else math.log(model.d_vocab)
        with_it, without = (total[:2] / n_targets).tolist()
        return Term(
            order=order,
            path=key if isinstance(key, tuple) else None,
            loss_nats=with_it,
            loss_effect_nats=left - with_it,
            removal_effect_nats=without - float(true_loss),
            logit_share=float(total[2]) / variance if variance else math.nan,
        )

    return [term(key, total) for key, total in sums.items()]


def _row(*values: float) -> Float[Tensor, "value"]:
    return torch.tensor(values, dtype=torch.float64)
