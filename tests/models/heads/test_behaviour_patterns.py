"""Pattern statistics and attention on keys against loops over every query, and on patterns one can do on paper."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from headstream.models.heads.attended_keys import (
    attention_on,
    duplicate_token_keys,
    induction_keys,
    previous_token_keys,
)
from headstream.models.heads.patterns import pattern_statistics, positional_offset, visible_keys

BOS = 0
BATCH, HEADS, POS, D_VOCAB = 5, 3, 17, 7


@pytest.fixture
def tokens():
    """Small vocabulary: many repeats, runs of one token, and BOS in the middle."""
    drawn = torch.randint(D_VOCAB, (BATCH, POS), generator=torch.Generator().manual_seed(0))
    drawn[:, 0] = BOS
    assert (drawn[:, 1:] == BOS).any()
    assert (drawn[:, 1:-1] == drawn[:, 2:]).any()
    return drawn


@pytest.fixture
def pattern():
    scores = 2 * torch.randn(BATCH, HEADS, POS, POS, generator=torch.Generator().manual_seed(1))
    future = torch.ones(POS, POS, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(-1)


# Which keys earn a score, one query at a time.


def slow_previous_token(tokens, query):
    return {query - 1} if query and BOS not in (tokens[query], tokens[query - 1]) else set()


def slow_duplicate_token(tokens, query):
    return {key for key in range(query) if tokens[key] == tokens[query] != BOS}


def slow_induction(tokens, query):
    followers = {key + 1 for key in slow_duplicate_token(tokens, query)}
    return {key for key in followers if key != query and tokens[key] != BOS}


@pytest.mark.parametrize(
    ("keys", "slow"),
    [
        (previous_token_keys, slow_previous_token),
        (duplicate_token_keys, slow_duplicate_token),
        (induction_keys, slow_induction),
    ],
)
def test_attention_on_keys_equals_a_loop(tokens, pattern, keys, slow):
    attended = attention_on(pattern, keys(tokens, BOS))
    for b, head, query in np.ndindex(BATCH, HEADS, POS):
        wanted = slow(tokens[b].tolist(), query)
        got = attended[b, head, query].item()
        if wanted:
            assert got == pytest.approx(sum(pattern[b, head, query, key].item() for key in wanted), abs=1e-6)
        else:
            assert math.isnan(got)


def test_keys_on_paper():
    """BOS a b b a BOS b."""
    tokens = torch.tensor([[0, 1, 2, 2, 1, 0, 2]])

    def listed(keys):
        return [tuple(pair) for pair in keys[0].nonzero().tolist()]

    assert listed(previous_token_keys(tokens, BOS)) == [(2, 1), (3, 2), (4, 3)]  # never onto or from BOS
    assert listed(duplicate_token_keys(tokens, BOS)) == [(3, 2), (4, 1), (6, 2), (6, 3)]
    # (3, 3) would be the query itself.
    assert listed(induction_keys(tokens, BOS)) == [(4, 2), (6, 3), (6, 4)]


def test_bos_earns_nothing():
    """A head that rests on BOS scores 0, and separators in the text are no repeats of one another."""
    tokens = torch.tensor([[0, 3, 0, 4, 0, 3, 0, 4]])
    on_bos = torch.zeros(1, 1, 8, 8)
    on_bos[0, 0, torch.arange(8), torch.tensor([0, 0, 0, 2, 2, 4, 4, 6])] = 1
    for keys in (previous_token_keys, duplicate_token_keys, induction_keys):
        assert torch.nan_to_num(attention_on(on_bos, keys(tokens, BOS))).sum() == 0
    bos_keys = visible_keys(tokens, BOS, with_bos=True) & ~visible_keys(tokens, BOS, with_bos=False)
    attended = attention_on(on_bos, bos_keys)[0, 0]
    assert attended[[1, 3, 5, 7]].tolist() == [1, 1, 1, 1]
    assert attended[[0, 2, 4, 6]].isnan().all()


@pytest.mark.parametrize("with_bos", [True, False])
def test_pattern_statistics_equal_a_loop(tokens, pattern, with_bos):
    pattern[0, 0, -1] = 0
    pattern[0, 0, -1, 0] = 1  # all on BOS: nothing is left without it
    statistics = pattern_statistics(pattern, visible_keys(tokens, BOS, with_bos=with_bos))
    for b, head, query in np.ndindex(BATCH, HEADS, POS):
        got = {name: values[b, head, query].item() for name, values in statistics.items()}
        row = pattern[b, head, query].tolist()
        keys = [key for key in range(query + 1) if with_bos or tokens[b, key] != BOS]
        mass = sum(row[key] for key in keys)
        if tokens[b, query] == BOS or len(keys) < 2 or mass == 0:
            assert all(math.isnan(value) for value in got.values())
            continue
        weight = {key: row[key] / mass for key in keys}
        entropy = -sum(w * math.log(w) for w in weight.values() if w)
        most = max(weight, key=weight.__getitem__)
        assert got == pytest.approx(
            {
                "entropy": entropy / math.log(len(keys)),
                "mean_distance": sum(w * (query - key) for key, w in weight.items()),
                "argmax_distance": query - most,
                "confidence": weight[most],
            },
            abs=1e-5,
        )


def test_statistics_on_paper():
    tokens = torch.tensor([[0, 5, 6]])
    pattern = torch.tensor([[[[1, 0, 0], [0.5, 0.5, 0], [0.5, 0.25, 0.25]]]])
    with_bos = pattern_statistics(pattern, visible_keys(tokens, BOS, with_bos=True))
    assert with_bos["mean_distance"][0, 0, 2] == 0.5 * 2 + 0.25 * 1
    assert with_bos["argmax_distance"][0, 0, 2] == 2
    assert with_bos["confidence"][0, 0, 2] == 0.5
    assert with_bos["entropy"][0, 0, 1] == 1
    without = pattern_statistics(pattern, visible_keys(tokens, BOS, with_bos=False))
    assert without["mean_distance"][0, 0, 2] == 0.5
    assert without["confidence"][0, 0, 2] == 0.5
    assert without["entropy"][0, 0, 2] == 1
    assert without["entropy"][0, 0, :2].isnan().all()  # one key is no choice


def test_positional_offset_equals_a_count():
    generator = torch.Generator().manual_seed(2)
    distance = torch.randint(4, (BATCH, HEADS, POS), generator=generator).float()
    distance[torch.rand(distance.shape, generator=generator) < 0.3] = torch.nan
    distance[:, 2] = torch.nan
    offset, share = positional_offset(distance)
    for head in range(2):
        counts = Counter(d for d in distance[:, head].flatten().tolist() if not math.isnan(d))
        most = max(counts.values())
        assert counts[offset[head].item()] == most
        assert share[head].item() == pytest.approx(most / counts.total())
    assert offset[2].isnan()
    assert share[2].isnan()
