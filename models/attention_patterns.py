"""The keys that a query sees, and attention that computes few scores of other keys.

A query sees itself and earlier positions: all of them (full), the nearest few (local), every stride-th (strided), or
the few keys of highest score (top_k). BOS is a key like any other: a window that has moved past it doesn't see it.
Scores by distance are [head, distance], with a single row if all heads have the same.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from headstream.models.blocks import query_block, window_block


def causal_mask(n: int, like: Tensor) -> Float[Tensor, "q_pos k_pos"]:
    """The causal mask, to be added to scores: 0 for visible keys, -inf for those in the future."""
    return torch.full((n, n), float("-inf"), dtype=like.dtype, device=like.device).triu(1)


def relative_scores(bias: Float[Tensor, "head distance"]) -> Float[Tensor, "head q_pos k_pos"]:
    """A bias by distance as scores: bias[q - k] where k <= q, -inf in the future."""
    return torch.ops.headstream.relative_scores(bias)


def _relative_scores(bias: Tensor) -> Tensor:
    """Take each row of the result as a window of one line of 2n - 1 numbers, shifted by one from row to row."""
    n_heads, n = bias.shape
    line = torch.cat([bias.flip(1), bias.new_full((n_heads, n - 1), float("-inf"))], dim=1)  # line[n - 1 + k - q]
    return line.unfold(1, n, 1).flip(1)


def _sum_by_distance(scores: Tensor) -> Tensor:
    """Sums of scores over the pairs at each distance, [head, distance]: the backward pass of `relative_scores`.

    Rows of 2n - 1 numbers, read as rows of 2n, shift by one from row to row: (k - q) mod 2n is then a column.
    """
    n_heads, n = scores.shape[:2]
    rows = scores.new_zeros(n_heads, 2 * n * n)
    rows[:, : n * (2 * n - 1)].view(n_heads, n, 2 * n - 1)[:, :, :n] = scores
    cycle = rows.view(n_heads, n, 2 * n).sum(dim=1)
    return torch.cat([cycle[:, :1], cycle[:, n + 1 :].flip(1)], dim=1)


def _operator(name: str, run: Callable[[Tensor], Tensor], shape: Callable[[Tensor], Tensor]) -> None:
    """Register an operator, since a compiler would otherwise recompute indices for every sequence of a batch.

    `torch.library.custom_op` would import the compiler at the first call, which takes seconds.
    """
    torch.library.define(name, "(Tensor x) -> Tensor", tags=[torch.Tag.pt2_compliant_tag])
    torch.library.impl(name, "default", run)
    torch.library.register_fake(name, shape)


if not hasattr(torch.ops.headstream, "relative_scores"):  # names are unique per process, which may import this twice
    _operator("headstream::relative_scores", _relative_scores, lambda bias: bias.new_empty(*bias.shape, bias.shape[1]))
    _operator("headstream::sum_by_distance", _sum_by_distance, lambda scores: scores.new_empty(scores.shape[:2]))
    torch.library.register_autograd(
        "headstream::relative_scores", lambda context, gradient: torch.ops.headstream.sum_by_distance(gradient)
    )


def at_every_distance(scores: Float[Tensor, "head n_seen"], stride: int, n: int) -> Float[Tensor, "head distance"]:
    """Scores at distances 0, stride, 2 stride, ... spread over all n distances, with -inf at the others."""
    scores = F.pad(scores[:, :, None], (0, stride - 1), value=float("-inf")).flatten(1)
    return F.pad(scores, (0, n - scores.shape[1]), value=float("-inf"))


def full_attention(
    q: Float[Tensor, "batch head pos d_head"],
    k: Float[Tensor, "batch head pos d_head"],
    v: Float[Tensor, "batch head pos d_value"],
    by_position: Float[Tensor, "... pos pos"],
) -> Float[Tensor, "batch head pos d_value"]:
    """Values mixed over all keys up to each query's own; `by_position` is added to the scores, -inf in the future."""
    n, mixed = q.shape[2], []
    block = query_block(n)
    for start in range(0, n, block):
        rows, visible = slice(start, start + block), slice(0, start + block)
        scores = q[:, :, rows] @ k[:, :, visible].transpose(2, 3) + by_position[..., rows, visible]
        mixed.append(scores.softmax(dim=-1) @ v[:, :, visible])
    return torch.cat(mixed, dim=2)


def windowed_attention(
    q: Float[Tensor, "batch head pos d_head"],
    k: Float[Tensor, "batch head pos d_head"],
    v: Float[Tensor, "batch head pos d_value"],
    by_distance: Float[Tensor, "#head n_seen"],
    stride: int,
) -> Float[Tensor, "batch head pos d_value"]:
    """Values mixed over the keys at distances 0, stride, 2 stride, ...; `by_distance` is added to the scores of each.

    Positions of one remainder modulo stride see only one another, at distances 0, 1, 2, ...: they are put side by side
    and cut into blocks at least as long as the window, so that a block of queries needs only the keys of its own block
    and of the one before. Time and memory grow with the number of positions, not with its square.
    """
    n = q.shape[2]
    length = window_block(by_distance.shape[1], stride, n)
    q, k, v = (_blocks(x, stride, length) for x in (q, k, v))
    scores = relative_scores(at_every_distance(by_distance, 1, 2 * length))[:, None, None, length:]
    first = _mix(q[:, :, :, :1], k[:, :, :, :1], v[:, :, :, :1], scores[..., length:])
    rest = _mix(q[:, :, :, 1:], _with_the_one_before(k), _with_the_one_before(v), scores)
    mixed = torch.cat([first, rest], dim=3)
    return mixed.movedim(2, 4).flatten(2, 4)[:, :, :n]


def _blocks(
    x: Float[Tensor, "batch head pos width"], stride: int, length: int
) -> Float[Tensor, "batch head stride block place width"]:
    x = F.pad(x, (0, 0, 0, -x.shape[2] % (stride * length)))
    return x.unflatten(2, (-1, length, stride)).movedim(4, 2)


def _with_the_one_before(blocks: Tensor) -> Tensor:
    return torch.cat([blocks[:, :, :, :-1], blocks[:, :, :, 1:]], dim=4)


def _mix(q: Tensor, k: Tensor, v: Tensor, scores: Tensor) -> Tensor:
    return (q @ k.mT + scores).softmax(-1) @ v


def soft_capped(x: Float[Tensor, "*shape"], cap: float | None) -> Float[Tensor, "*shape"]:
    """Numbers kept between -cap and cap, which change little where they are small; as they are without a cap."""
    return x if cap is None else cap * (x / cap).tanh()


def keep_top(scores: Float[Tensor, "*batch q_pos k_pos"], k: int) -> Float[Tensor, "*batch q_pos k_pos"]:
    """Scores with all but the k highest of each query replaced by -inf; among equals, the nearest keys are kept.

    All scores must be computed to choose from: time and memory grow with the square of the number of positions.
    """
    least = scores.topk(min(k, scores.shape[-1])).values[..., -1:]
    above, equal = scores > least, scores == least
    room = k - above.sum(-1, keepdim=True)
    nth_nearest = equal.flip(-1).cumsum(-1, dtype=torch.int32).flip(-1)
    return scores.masked_fill(~(above | equal & (nth_nearest <= room)), float("-inf"))
