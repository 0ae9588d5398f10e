"""Losses and sequences of repeats, against loops and numbers one can do on paper."""

import math
import statistics

import pytest
import torch

from headstream.models.losses import repeat_losses, text_losses, token_losses
from headstream.models.repeats import (
    fixed_period_repeats,
    middle_tokens,
    random_period_repeats,
    repeat_tokens,
    repeated_bigrams,
)

BOS = 0


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_token_losses_are_nats():
    logits = torch.tensor([[[0.0, 0.0], [0.0, math.log(3)]]])
    losses = token_losses(logits, torch.tensor([[1, 0]]))
    assert losses[0].tolist() == pytest.approx([math.log(2), math.log(4)])


@pytest.mark.parametrize(
    ("n", "indices"), [(2048, (50, 500)), (506, (50, 500)), (505, (50, 479)), (128, (12, 121)), (2, (0, 1))]
)
def test_context_indices(n, indices):
    losses = text_losses(torch.zeros(1, n), torch.tensor([0]))
    assert (losses["early_index"], losses["late_index"]) == indices


@pytest.mark.parametrize("n", [2, 16, 128, 600])
def test_text_losses_equal_loops(n):
    losses = torch.rand(3, n, generator=generator())
    got = text_losses(losses, torch.tensor([3, 5, 7]))
    rows = losses.tolist()
    by_sequence = [statistics.fmean(row) for row in rows]
    by_position = [statistics.fmean(row[i] for row in rows) for i in range(n)]
    assert got["validation_loss_nats"] == pytest.approx(statistics.fmean(by_sequence))
    assert got["validation_loss_sem_nats"] == pytest.approx(statistics.stdev(by_sequence) / math.sqrt(3))
    assert got["position_losses_nats"].tolist() == pytest.approx(by_position)
    means = []
    for index in (got["early_index"], got["late_index"]):
        reach = max(r for r in range(6) if index - r >= 0 and index + r < n)
        means.append(statistics.fmean(by_position[i] for i in range(index - reach, index + reach + 1)))
    assert got["in_context_learning_nats"] == pytest.approx(means[1] - means[0])
    assert (got["n_windows"], got["n_documents"]) == (3, 3)


def test_standard_errors_are_over_documents():
    losses = torch.rand(2, 8, generator=generator()).repeat(6, 1)
    got = text_losses(losses, torch.tensor([0, 1]).repeat(6))
    assert (got["n_windows"], got["n_documents"]) == (12, 2)
    assert got["validation_loss_sem_nats"] == pytest.approx(abs(losses[0].mean() - losses[1].mean()).item() / 2)
    learning = losses[:, 7] - losses[:, 0]
    assert got["in_context_learning_sem_nats"] == pytest.approx(abs(learning[0] - learning[1]).item() / 2)


def test_one_document_has_no_standard_error():
    got = text_losses(torch.rand(9, 16, generator=generator()), torch.zeros(9, dtype=torch.int64))
    assert math.isnan(got["validation_loss_sem_nats"])
    assert math.isnan(got["in_context_learning_sem_nats"])


def test_repeat_losses_on_paper():
    losses = torch.tensor([[4.0, 2.0, 1.0, 1.0], [6.0, 5.0, 3.0, 0.0]])
    got = repeat_losses(losses, torch.tensor([[1, 2, 3, 4], [1, 1, 2, 2]]))
    assert got["first_occurrence_loss_nats"] == 5
    assert got["later_occurrence_loss_nats"] == pytest.approx(7 / 5)
    assert got["repeat_gain_nats"] == pytest.approx(5 - 7 / 5)
    assert got["occurrence_losses_nats"].tolist() == pytest.approx([5, 5 / 3, 1, 1])


def test_middle_tokens_leave_out_the_ends_bos_and_what_never_comes():
    counts = torch.arange(60)  # token 0 never comes; 59 is the most frequent
    bos = 59
    middle = middle_tokens(counts, bos).tolist()
    assert middle == list(range(56, 2, -1))  # of 58 tokens two at either end are left out


def test_fixed_periods_are_those_of_the_prefix_matching_score():
    repeats = fixed_period_repeats(torch.ones(97, dtype=torch.int64), BOS, 128, 10, generator())
    assert repeats.tokens.shape == (10, 1 + 4 * 25 + 1)
    for sequence, occurrence in zip(repeats.tokens.tolist(), repeats.occurrence.tolist(), strict=True):
        assert sequence[0] == BOS
        assert len(set(sequence[1:26])) == 25
        assert sequence[1:101] == 4 * sequence[1:26]
        assert sequence[101] == sequence[1]
        assert occurrence == [0, *25 * [1], *25 * [2], *25 * [3], *25 * [4], 5]
    assert len({tuple(sequence) for sequence in repeats.tokens.tolist()}) == 10


@pytest.mark.parametrize(("d_vocab", "n_ctx", "period"), [(97, 101, 25), (97, 100, 24), (97, 9, 2), (11, 128, 10)])
def test_fixed_period_shrinks_to_fit(d_vocab, n_ctx, period):
    repeats = fixed_period_repeats(torch.ones(d_vocab, dtype=torch.int64), BOS, n_ctx, 3, generator())
    assert repeats.tokens.shape[1] == 1 + 4 * period + 1
    assert len(set(repeats.tokens[0, 1:].tolist())) == period


@pytest.mark.parametrize(("d_vocab", "n_ctx"), [(97, 8), (2, 128)])
def test_repeats_that_do_not_fit_are_none(d_vocab, n_ctx):
    assert fixed_period_repeats(torch.ones(d_vocab, dtype=torch.int64), BOS, n_ctx, 3, generator()) is None


def test_random_periods_cover_their_range():
    n_ctx = 64
    counts = torch.ones(97, dtype=torch.int64)
    repeats = random_period_repeats(counts, BOS, n_ctx, 50, generator())
    assert repeats.tokens.shape == (50, n_ctx + 1)
    periods = (repeats.occurrence == 1).sum(1)
    assert sorted(set(periods.tolist())) == list(range(8, 33))
    assert set(torch.bincount(periods)[8:].tolist()) == {2}
    for sequence, occurrence, period in zip(repeats.tokens, repeats.occurrence, periods.tolist(), strict=True):
        content = sequence[1:].tolist()
        assert len(set(content[:period])) == period
        for i, token in enumerate(content):
            assert token == content[i % period] != BOS
            assert occurrence[i + 1] == content[: i + 1].count(token)
    again = random_period_repeats(counts, BOS, n_ctx, 50, generator())
    assert torch.equal(repeats.tokens, again.tokens)
    other = random_period_repeats(counts, BOS, n_ctx, 50, generator(1))
    assert not torch.equal(repeats.tokens, other.tokens)


def test_random_periods_need_as_many_tokens():
    assert random_period_repeats(torch.ones(11, dtype=torch.int64), BOS, 128, 3, generator()) is None


def test_repeats_draw_from_the_pool_evenly():
    pool = torch.tensor([3, 5, 7, 11, 13])
    repeats = repeat_tokens(pool, BOS, torch.full((2000,), 2), 2, generator())
    counts = torch.bincount(repeats.tokens[:, 1:].flatten())
    assert counts.nonzero().flatten().tolist() == pool.tolist()
    assert (counts[pool] / 4000).tolist() == pytest.approx(5 * [0.2], abs=0.03)


def test_repeated_bigrams_on_paper():
    tokens = torch.tensor(
        [
            [0, 1, 2, 3, 1, 2, 3, 1, 2],  # 12, 23, 31
            [0, 1, 1, 1, 1, 1, 1, 1, 1],  # 11
            [0, 1, 2, 3, 4, 5, 6, 7, 8],
            [0, 1, 0, 1, 0, 1, 0, 1, 0],  # BOS is in each
        ]
    )
    assert repeated_bigrams(tokens, BOS).tolist() == [3, 1, 0, 0]
