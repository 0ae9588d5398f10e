"""Which documents probes are trained, chosen and tested on, and how many tokens of each."""

import numpy as np
import pytest
from tiny import tiny_tokens
from written_text import write_text

from headstream.tasks.measuring.probe_texts import dealt, probe_texts
from headstream.tasks.text.token_reading import Tokens


@pytest.mark.parametrize("n_tokens", [7, 31, 10**6])
@pytest.mark.parametrize("wanted", [(100, 30, 50), (10**6, 10**6, 10**6)])
def test_the_three_texts_have_no_document_in_common(n_tokens, wanted):
    tokens = Tokens.open(tiny_tokens())
    opened = tokens.document_starts("validation")
    stream = tokens.validation.read(0, len(tokens.validation))
    texts = probe_texts(tokens, n_tokens, *wanted)
    found = []
    for text, n in zip(texts, wanted, strict=True):
        length = text.windows.shape[1]
        assert length == min(n_tokens, length)
        assert 0 < text.windows.size < n + length
        assert (stream[text.places] == text.windows.ravel()).all()
        assert (np.diff(text.places) > 0).all()
        numbers = np.searchsorted(opened, text.places, side="right") - 1
        assert (text.document_numbers() == numbers).all()
        assert {document.number for document in text.documents} == set(numbers)
        assert all(stream[document.start - 1] == tokens.bos for document in text.documents)
        assert all(tokens.bos not in stream[document.start : document.end] for document in text.documents)
        found.append(set(numbers))
    assert len(set.union(*found)) == sum(map(len, found))
    sequences = texts.test.sequences(tokens.bos)
    assert (sequences[:, 0] == tokens.bos).all()
    assert (sequences[:, 1:].numpy() == texts.test.windows).all()


def test_documents_are_dealt_to_the_three_in_turn():
    tokens = Tokens.open(tiny_tokens())
    n_documents = len(tokens.document_starts("validation"))
    train, selection, test = (set(text.document_numbers()) for text in probe_texts(tokens, 5, 10**6, 10**6, 10**6))
    eighths = [set(range(first, n_documents, 8)) for first in range(8)]
    assert train == eighths[1] | eighths[5]
    assert selection == eighths[2]
    assert test == set(range(n_documents)) - train - selection


def test_documents_are_found_across_reads(monkeypatch):
    tokens = Tokens.open(tiny_tokens())
    whole = tokens.document_starts("validation")
    monkeypatch.setattr("headstream.tasks.text.token_reading.SEARCHED_TOKENS", 101)
    np.testing.assert_array_equal(tokens.document_starts("validation"), whole)


def test_two_documents_give_no_windows(tmp_path):
    tokens = Tokens.open(write_text(tmp_path, {f"{n}.txt": f"{n} runs\n" * 9 for n in range(5)}))
    assert len(tokens.document_starts("validation")) == 2
    assert [text.windows.size for text in probe_texts(tokens, 5, 100, 100, 100)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("sizes", "n", "expected"),
    [
        ((2, 9, 9), 8, [2, 3, 3]),
        ((1, 1, 50), 10, [1, 1, 8]),
        ((1,) * 20, 5, [1, 1, 1, 1, 1]),
        ((3, 4), 100, [3, 4]),
        ((5,), 2, [2]),
    ],
)
def test_every_document_gives_as_many_windows_as_the_others(sizes, n, expected):
    home = np.repeat(np.arange(len(sizes)), sizes)
    chosen = dealt(home, n)
    assert np.unique(home[chosen], return_counts=True)[1].tolist() == expected
    assert (np.diff(chosen) > 0).all()


def test_windows_of_a_document_are_spread_evenly_over_it():
    assert np.diff(dealt(np.zeros(100, int), 10)).tolist() == [10] * 9
