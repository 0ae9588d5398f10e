"""Ways to attend with a relative bias, of which another than the models' own may be faster on a GPU."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from headstream.models.attention_heads import Attention
from headstream.models.attention_patterns import full_attention


def _fused(q: Tensor, k: Tensor, v: Tensor, attention: Attention) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attention.position_scores(q.shape[2]))


def _by_products(q: Tensor, k: Tensor, v: Tensor, attention: Attention) -> Tensor:
    return full_attention(q * q.shape[3] ** -0.5, k, v, attention.position_scores(q.shape[2]))


def _flexible(q: Tensor, k: Tensor, v: Tensor, attention: Attention) -> Tensor:
    """By FlexAttention, which adds the bias of each distance as it goes, and passes over blocks of hidden keys."""
    by_distance, n = attention.scores_by_distance(), q.shape[2]

    def add_bias(score: Tensor, _: Tensor, head: Tensor, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return score + by_distance[head, (q_pos - k_pos).clamp(min=0)]

    return _flex_attention(q.is_cuda)(q, k, v, score_mod=add_bias, block_mask=_causal_blocks(n, q.device.type))


@cache
def _flex_attention(compiled: bool) -> Callable[..., Any]:
    attend: Callable[..., Any] = flex_attention
    return torch.compile(attend, dynamic=False) if compiled else attend


@cache
def _causal_blocks(n: int, device: str) -> BlockMask:
    return create_block_mask(lambda _, head, q_pos, k_pos: q_pos >= k_pos, None, None, n, n, device=device)


WAYS: dict[str, Callable[[Tensor, Tensor, Tensor, Attention], Tensor]] = {
    "fused": _fused,
    "products": _by_products,
    "flexible": _flexible,
}
