"""Shares of text that repeats itself: against a search one token at a time, planted repeats, and text without any."""

import random
import string
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from tiny import tiny_tokens
from written_text import write_text

from headstream.tasks.text import repeated_text
from headstream.tasks.text.repeated_text import CONTEXTS, repeat_shares
from headstream.tasks.text.token_reading import Tokens


def documents_of(tokens):
    """Each validation document, token by token."""
    stream = tokens.validation.read(0, len(tokens.validation)).tolist()
    starts = [*tokens.document_starts("validation").tolist(), len(stream)]
    return [stream[start:end] for start, end in pairwise(starts)]


def searched(tokens, context):
    """The shares as their definition has them."""
    train = tokens.train.read(0, len(tokens.train)).tolist()
    followers = {}
    for source, target in pairwise(train):
        followers.setdefault(source, Counter())[target] += 1
    commonest = {source: min(counts, key=lambda t: (-counts[t], t)) for source, counts in followers.items()}
    right = []
    for document in documents_of(tokens):
        for t in range(1, len(document) - 1):
            seen = document[max(0, t + 1 - context) : t + 1]
            of_length = []
            for length in (1, 2):
                places = [
                    p for p in range(len(seen) - length) if seen[p : p + length] == document[t + 1 - length : t + 1]
                ]
                of_length.append(bool(places) and seen[places[-1] + length] == document[t + 1])
            token, pair = of_length
            right.append((token, pair, pair and commonest.get(document[t]) != document[t + 1]))
    return np.mean(right, axis=0)


@pytest.mark.parametrize("context", [3, 8, 64])
def test_shares_equal_those_searched_one_by_one(monkeypatch, context):
    monkeypatch.setattr(repeated_text, "CONTEXTS", (context,))
    tokens = Tokens.open(tiny_tokens())
    (row,) = repeat_shares(tokens)
    assert row.pop("context") == context
    assert [*row.values()] == pytest.approx(searched(tokens, context))
    assert row["beyond_bigrams_share"] <= row["pair_share"]


def test_longer_contexts_hold_more_pairs():
    shares = [row["pair_share"] for row in repeat_shares(Tokens.open(tiny_tokens()))]
    assert len(shares) == len(CONTEXTS)
    assert shares[0] < shares[2] < shares[4]


def test_repeated_halves_are_found_where_the_context_reaches_them(tmp_path):
    rng = random.Random(0)
    halves = ["".join(rng.choices(string.ascii_letters, k=100)) for _ in range(60)]
    rows = {}
    for name, second in (("once", halves[1:] + halves[:1]), ("twice", halves)):
        (tmp_path / name).mkdir()
        files = {f"{i}.txt": half + other for i, (half, other) in enumerate(zip(halves, second, strict=True))}
        tokens = write_text(tmp_path / name, files, vocabulary=257)  # a token a letter
        rows[name] = {row["context"]: row["pair_share"] for row in repeat_shares(Tokens.open(tokens))}
    assert rows["twice"][128] == pytest.approx(98 / 199, abs=0.03)
    assert rows["twice"][64] < 0.05
    assert max(rows["once"].values()) < 0.05
