"""Attention in float64, a head at a time: which keys a query sees, what becomes of its scores, what it mixes."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from headstream.tasks.importing.reference.maths import kept_below


@dataclass(frozen=True)
class Visible:
    """The keys that a query sees: its own and earlier ones, the nearest of them, every so many, or the highest."""

    window: int | None = None  # how many, the nearest
    stride: int = 1  # between those that count, in the window as well
    top_k: int | None = None  # how many, of the highest scores; the nearest in ties

    def mask(self, n: int) -> Bool[Tensor, "query key"]:
        """Which of n keys each query sees, whatever their scores."""
        behind = torch.arange(n)[:, None] - torch.arange(n)
        seen = (behind >= 0) & (behind % self.stride == 0)
        return seen if self.window is None else seen & (behind < self.window * self.stride)


@dataclass(frozen=True)
class ScoreForm:
    """What becomes of the product of a query and a key: it is scaled, then capped, then something is added."""

    scale: float
    cap: float | None = None
    added: Float64[Tensor, "head query key"] | None = None

    def of(self, products: Float64[Tensor, "batch query key"], head: int) -> Float64[Tensor, "batch query key"]:
        """The scores of a head."""
        scores = products * self.scale
        if self.cap is not None:
            scores = kept_below(scores, self.cap)
        return scores if self.added is None else scores + self.added[head]


ALL_EARLIER = Visible()


def attended(
    q: Float64[Tensor, "batch pos head width"],
    k: Float64[Tensor, "batch pos group width"],
    v: Float64[Tensor, "batch pos group value"],
    scores: ScoreForm,
    visible: Visible = ALL_EARLIER,
) -> Float64[Tensor, "batch pos head value"]:
    """Each head's mix of the values at the positions that it sees.

    Query head h reads group h // (heads / groups).
    """
    n_heads, n_groups, seen = q.shape[2], k.shape[2], visible.mask(q.shape[1])
    mixed = q.new_empty(*q.shape[:3], v.shape[3])
    for head in range(n_heads):
        group = head // (n_heads // n_groups)
        products = torch.einsum("bqd,bkd->bqk", q[:, :, head], k[:, :, group])
        seen_scores = torch.where(seen, scores.of(products, head), -math.inf)
        if visible.top_k is not None:
            seen_scores = highest(seen_scores, visible.top_k)
        pattern = torch.softmax(seen_scores, dim=-1)
        mixed[:, :, head] = torch.einsum("bqk,bkd->bqd", pattern, v[:, :, group])
    return mixed


def highest(scores: Float64[Tensor, "batch pos key"], k: int) -> Float64[Tensor, "batch pos key"]:
    """The k highest scores of each query, all others -inf; of equal ones those of the last keys stay."""
    best_first = scores.flip(-1).argsort(dim=-1, descending=True, stable=True)
    keys = scores.shape[-1] - 1 - best_first[..., :k]
    return torch.full_like(scores, -math.inf).scatter(-1, keys, scores.gather(-1, keys))
