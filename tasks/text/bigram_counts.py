"""Bigrams of token streams, and the loss of one stream under another's: a baseline that a model must beat."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstream.tasks.text.token_reading import TokenStream

DENSE_VOCABULARY = 4096  # up to which there is room to count every possible bigram
COUNTED_TOKENS = 2**22  # tokens of the stream counted at a time
MAX_BIGRAMS = 2**24  # distinct ones counted in one pass over a stream, to bound memory

Counts = NDArray[np.int64]


class BigramCounts(NamedTuple):
    """The distinct bigrams of a stream, sorted by source and then by target: arrays of equal length."""

    source: Counts
    target: Counts
    n_pairs: Counts


def count_bigrams(stream: TokenStream, vocabulary: int, n_tokens: int, sources: range | None = None) -> BigramCounts:
    """Count the bigrams of a stream's first tokens, or only those with a source in a range."""
    n_tokens = min(n_tokens, len(stream))
    found, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    waiting: list[tuple[Counts, Counts]] = []
    for start in range(0, n_tokens - 1, COUNTED_TOKENS):
        stop = min(start + COUNTED_TOKENS + 1, n_tokens)
        waiting.append(_distinct(stream.read(start, stop).astype(np.int64), vocabulary, sources))
        # Each merge but the last at least doubles what is merged, so few are needed, however long the stream is.
        if stop == n_tokens or sum(len(cells) for cells, _ in waiting) > len(found):
            cells, counted = map(np.concatenate, zip((found, counts), *waiting, strict=True))
            found, place = np.unique(cells, return_inverse=True)
            counts = np.bincount(place, counted).astype(np.int64)
            waiting = []
    return BigramCounts(found // vocabulary, found % vocabulary, counts)


def _distinct(tokens: Counts, vocabulary: int, sources: range | None) -> tuple[Counts, Counts]:
    """The distinct bigrams of tokens as source * vocabulary + target, ascending, and the count of each."""
    source, target = tokens[:-1], tokens[1:]
    if sources is not None:
        inside = (source >= sources.start) & (source < sources.stop)
        source, target = source[inside], target[inside]
    cells = source * vocabulary + target
    if vocabulary <= DENSE_VOCABULARY:
        by_cell = np.bincount(cells)
        return np.flatnonzero(by_cell), by_cell[by_cell > 0]
    return np.unique(cells, return_counts=True)


def count_losses(train: TokenStream, other: TokenStream, token_counts: Counts) -> dict[str, float]:
    """Loss of another stream, nats per token, under counts of tokens and of bigrams of the training stream.

    Witten-Bell smoothing, under which nothing is impossible: bigrams are interpolated with unigrams, and unigrams with
    a uniform distribution, by the number of distinct successors among all. `token_counts` are those of `train`. NaN if
    there is nothing to count or to predict. BOS is a token like others.
    Source: Witten & Bell 1991; Chen & Goodman 1999, section 2.4.
    """
    vocabulary, n = len(token_counts), len(other) - 1
    if n < 1 or len(train) < 2:
        return {"unigram_loss_nats": np.nan, "bigram_loss_nats": np.nan}
    unigram = unigram_probabilities(token_counts)
    losses = np.zeros(2)
    for sources in _ranges(np.minimum(token_counts, vocabulary)):
        seen = count_bigrams(train, vocabulary, len(train), sources)
        asked = count_bigrams(other, vocabulary, len(other), sources)
        kinds = np.bincount(seen.source, minlength=vocabulary)[asked.source]
        total = np.bincount(seen.source, seen.n_pairs, minlength=vocabulary)[asked.source]
        before = unigram[asked.target]
        weighed = (_count_of(asked, seen, vocabulary) + kinds * before) / np.maximum(total + kinds, 1)
        bigram = np.where(total > 0, weighed, before)
        losses -= asked.n_pairs @ np.log(np.stack([before, bigram], axis=1)) / n
    return dict(zip(("unigram_loss_nats", "bigram_loss_nats"), losses.tolist(), strict=True))


def commonest_successors(train: TokenStream, token_counts: Counts) -> Counts:
    """The most frequent successor of each token in a stream, the first of equals; -1 if there is none: [vocabulary].

    `token_counts` are those of the stream.
    """
    vocabulary = len(token_counts)
    commonest = np.full(vocabulary, -1)
    for sources in _ranges(np.minimum(token_counts, vocabulary)):
        seen = count_bigrams(train, vocabulary, len(train), sources)
        order = np.lexsort((-seen.n_pairs, seen.source))
        source, first = np.unique(seen.source[order], return_index=True)
        commonest[source] = seen.target[order][first]
    return commonest


def unigram_probabilities(token_counts: Counts) -> NDArray[np.float64]:
    """The probability of each token by its count, interpolated with a uniform distribution as in `count_losses`."""
    n_distinct = np.count_nonzero(token_counts)
    return (token_counts + n_distinct / len(token_counts)) / (token_counts.sum() + n_distinct)


def _count_of(asked: BigramCounts, seen: BigramCounts, vocabulary: int) -> Counts:
    """The count of each bigram of `asked` in `seen`."""
    cells, wanted = (counts.source * vocabulary + counts.target for counts in (seen, asked))
    _, where_seen, where_asked = np.intersect1d(cells, wanted, assume_unique=True, return_indices=True)
    counts = np.zeros_like(asked.n_pairs)
    counts[where_asked] = seen.n_pairs[where_seen]
    return counts


def _ranges(most_targets: Counts) -> Iterator[range]:
    """Ranges of tokens with at most `MAX_BIGRAMS` distinct successors in all, or of a single token."""
    start, held = 0, 0
    for token, most in enumerate(most_targets.tolist()):
        if held and held + most > MAX_BIGRAMS:
            yield range(start, token)
            start, held = token, 0
        held += most
    yield range(start, len(most_targets))
