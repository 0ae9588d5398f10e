"""Sequences of repeated random tokens, which only heads that match a token and look one further can predict.

A sequence opens with BOS, if the model has one. No token occurs twice within a period, so that each token determines
its successor.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from headstream.models.bos import n_bos
from headstream.models.bos_in_tensors import opened


@dataclass(frozen=True)
class Repeats:
    """Sequences in which one period of tokens repeats."""

    tokens: Int[Tensor, "batch pos"]
    occurrence: Int[Tensor, "batch pos"]  # 1 where a token occurs for the first time, then 2, ...; 0 at BOS


def middle_tokens(counts: Int[Tensor, "d_vocab"], bos: int) -> Int[Tensor, "token"]:
    """Tokens in the middle of the corpus's frequency ranking: its top and bottom 4 % are left out.

    BOS and tokens that the corpus never uses have no rank. Source: Olsson et al. 2022, prefix matching score.
    """
    ranked = counts.argsort(descending=True, stable=True)
    ranked = ranked[(counts[ranked] > 0) & (ranked != bos)]
    left_out = round(0.04 * len(ranked))
    return ranked[left_out : len(ranked) - left_out]


def fixed_period_repeats(
    counts: Int[Tensor, "d_vocab"], bos: int, n_ctx: int, n_sequences: int, generator: Generator
) -> Repeats | None:
    """Sequences of 25 tokens repeated four times, and one more token to predict.

    The period is shorter if n_ctx or the vocabulary is too small; None if not even two tokens fit.
    Source: Olsson et al. 2022, prefix matching score.
    """
    pool, n_repeats = middle_tokens(counts, bos), 4
    period = min(25, (n_ctx - 1) // n_repeats, len(pool))
    if period < 2:
        return None
    return repeat_tokens(pool, bos, torch.full((n_sequences,), period), n_repeats * period + 1, generator)


def random_period_repeats(
    counts: Int[Tensor, "d_vocab"], bos: int, n_ctx: int, n_sequences: int, generator: Generator
) -> Repeats | None:
    """Sequences that fill n_ctx, and one more token to predict, with periods from n_ctx / 8 to n_ctx / 2.

    No fixed offset fits them all. All periods occur equally often, give or take one. None if the vocabulary is too
    small for them.
    """
    pool = middle_tokens(counts, bos)
    shortest, longest = max(2, n_ctx // 8), min(n_ctx // 2, len(pool))
    if longest < shortest:
        return None
    span = longest - shortest + 1
    rounds = [torch.randperm(span, generator=generator) for _ in range(0, n_sequences, span)]
    length = n_ctx + 1 - n_bos(bos)
    return repeat_tokens(pool, bos, shortest + torch.cat(rounds)[:n_sequences], length, generator)


def repeat_tokens(
    pool: Int[Tensor, "token"], bos: int, periods: Int[Tensor, "batch"], length: int, generator: Generator
) -> Repeats:
    """BOS, if there is one, and `length` tokens in each sequence: random ones of the pool, repeated with its period."""
    drawn = torch.rand(len(periods), len(pool), generator=generator).argsort(dim=1)
    step = torch.arange(length).expand(len(periods), -1)
    tokens = pool[drawn.gather(1, step % periods[:, None])]
    occurrence = step // periods[:, None] + 1
    return Repeats(opened(tokens, bos), torch.cat([torch.zeros(len(periods), n_bos(bos)).long(), occurrence], 1))


def repeated_bigrams(tokens: Int[Tensor, "batch pos"], bos: int) -> Int[Tensor, "batch"]:
    """Number of distinct bigrams that occur more than once in each sequence, not counting those with BOS."""
    first, second = tokens[:, :-1], tokens[:, 1:]
    alone = -1 - torch.arange(first.shape[1], device=tokens.device)
    bigrams = torch.where((first == bos) | (second == bos), alone, first * (tokens.max() + 1) + second)
    again = bigrams.sort(dim=1).values.diff(dim=1) == 0
    return again[:, :1].sum(1) + (again[:, 1:] & ~again[:, :-1]).sum(1)
