"""Bigrams counted across reads, shards and ranges; losses under counts against a slow reference and on paper."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from tiny import tiny_tokens

from headstream.tasks.text import bigram_counts
from headstream.tasks.text.bigram_counts import count_bigrams, count_losses
from headstream.tasks.text.token_reading import Tokens, TokenStream


def stream_of(tokens: list[int] | np.ndarray) -> TokenStream:
    middle = len(tokens) // 2
    return TokenStream([np.array(part, np.uint16) for part in (tokens[:middle], tokens[middle:])])


def losses(train, other, vocabulary):
    return count_losses(stream_of(train), stream_of(other), np.bincount(train, minlength=vocabulary))


@pytest.mark.parametrize("dense", [4096, 1])
@pytest.mark.parametrize("n_tokens", [2, 997, 10**6])
@pytest.mark.parametrize("sources", [None, range(3, 8)])
def test_bigrams_are_counted_across_reads_and_shards(monkeypatch, dense, n_tokens, sources):
    monkeypatch.setattr(bigram_counts, "DENSE_VOCABULARY", dense)
    monkeypatch.setattr(bigram_counts, "COUNTED_TOKENS", 100)
    stream = np.random.default_rng(0).integers(0, 13, 1500, dtype=np.uint16)
    found = count_bigrams(TokenStream([stream[:700], stream[700:]]), 13, n_tokens, sources)
    expected = np.zeros((13, 13), int)
    np.add.at(expected, (stream[: n_tokens - 1][: len(stream) - 1], stream[1:n_tokens]), 1)
    if sources:
        expected[[source for source in range(13) if source not in sources]] = 0
    counts = np.zeros((13, 13), int)
    counts[found.source, found.target] = found.n_pairs
    assert (counts == expected).all()
    assert (np.diff(found.source * 13 + found.target) > 0).all()


def slow_losses(train, other, vocabulary):
    """Witten-Bell as it is written: one probability after the other."""
    counts, pairs, before = Counter(train), Counter(pairwise(train)), Counter(train[:-1])
    followers = Counter(source for source, _ in pairs)

    def unigram(token):
        return (counts[token] + len(counts) / vocabulary) / (len(train) + len(counts))

    def bigram(source, token):
        if not before[source]:
            return unigram(token)
        weight = followers[source] / (followers[source] + before[source])
        return (1 - weight) * pairs[source, token] / before[source] + weight * unigram(token)

    for source in range(vocabulary):
        assert sum(bigram(source, token) for token in range(vocabulary)) == pytest.approx(1)
    asked = list(pairwise(other))
    return {
        "unigram_loss_nats": -sum(math.log(unigram(token)) for _, token in asked) / len(asked),
        "bigram_loss_nats": -sum(math.log(bigram(*pair)) for pair in asked) / len(asked),
    }


@pytest.mark.parametrize("most", [2**24, 30, 1])
def test_losses_are_those_of_a_slow_reference(monkeypatch, most):
    monkeypatch.setattr(bigram_counts, "MAX_BIGRAMS", most)
    monkeypatch.setattr(bigram_counts, "COUNTED_TOKENS", 100)
    rng = np.random.default_rng(0)
    train, other = (rng.geometric(0.3, n).clip(max=17).tolist() for n in (600, 200))
    assert losses(train, other, 19) == pytest.approx(slow_losses(train, other, 19))
    unseen = [*other, 18, 0, 18]
    assert losses(train, unseen, 19) == pytest.approx(slow_losses(train, unseen, 19))


def test_losses_on_paper():
    """After 0 came two different tokens in three places: 1 twice, and 2 of 3 + 2 parts are as tokens have it, 3 / 7."""
    found = losses([0, 0, 1, 0, 1], [0, 1], 2)
    assert found["unigram_loss_nats"] == pytest.approx(-math.log((2 + 1) / (5 + 2)))
    assert found["bigram_loss_nats"] == pytest.approx(-math.log((2 + 2 * 3 / 7) / (3 + 2)))


@pytest.mark.parametrize(("train", "other"), [([1, 2, 3], [1]), ([1, 2, 3], []), ([1], [1, 2, 3]), ([], [1, 2, 3])])
def test_nothing_to_count_or_to_predict_is_missing(train, other):
    train, other = np.array(train, int), np.array(other, int)
    assert all(math.isnan(loss) for loss in losses(train, other, 5).values())


def test_real_bigrams_tell_more_than_tokens_and_tokens_more_than_nothing():
    tokens = Tokens.open(tiny_tokens())
    found = count_losses(tokens.train, tokens.validation, tokens.counts)
    assert found["bigram_loss_nats"] < found["unigram_loss_nats"] < math.log(tokens.vocabulary)
