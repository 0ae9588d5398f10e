"""Masks of the keys that a kind of head attends to, given the tokens, and the attention that those keys get.

A mask is True at the keys that count. BOS never counts, as a query or as a key: heads rest on it.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

KeysOf = Callable[[Tensor, int], Tensor]  # a mask of the keys that count, from tokens and BOS


def previous_token_keys(tokens: Int[Tensor, "batch pos"], bos: int) -> Bool[Tensor, "batch q_pos k_pos"]:
    """Keys right before each query, which a previous-token head attends to."""
    n = tokens.shape[1]
    before = torch.ones(n, n, dtype=torch.bool, device=tokens.device)
    return _not_bos(tokens, bos) & before.tril(-1).triu(-1)


def duplicate_token_keys(tokens: Int[Tensor, "batch pos"], bos: int) -> Bool[Tensor, "batch q_pos k_pos"]:
    """Earlier keys with the query's token, which a duplicate-token head attends to."""
    return _not_bos(tokens, bos) & (tokens[:, :, None] == tokens[:, None, :]).tril(-1)


def induction_keys(tokens: Int[Tensor, "batch pos"], bos: int) -> Bool[Tensor, "batch q_pos k_pos"]:
    """Keys right after an earlier occurrence of the query's token, which an induction head attends to."""
    after = duplicate_token_keys(tokens, bos).roll(1, dims=2)  # entries that wrap round lie in the future
    return _not_bos(tokens, bos) & after.tril(-1)


def attention_on(
    pattern: Float[Tensor, "batch head q_pos k_pos"], keys: Bool[Tensor, "batch q_pos k_pos"]
) -> Float[Tensor, "batch head q_pos"]:
    """Attention that each query gives to the keys of a mask, 0..1; NaN if it has no such key."""
    return (pattern * keys[:, None]).sum(-1).where(keys.any(-1)[:, None], torch.nan)


def _not_bos(tokens: Int[Tensor, "batch pos"], bos: int) -> Bool[Tensor, "batch q_pos k_pos"]:
    content = tokens != bos
    return content[:, :, None] & content[:, None, :]
