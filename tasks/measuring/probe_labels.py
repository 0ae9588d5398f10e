"""The tokens that probes are trained and tested on, of different documents, and their labels.

A token's label is decided by its last byte. What a window of text can't tell is left out: how far back something was
that came before the window.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from tasks.measuring.python_labels import PythonLabels, python_labels
from tasks.measuring.text_labels import LINE_END, SENTENCE_END, Labels, log_bucket, tokens_since_last, tokens_since_same
from tasks.text.token_reading import Tokens, TokenStream

PYTHON_TASKS = (
    "lexical_class",
    "bracket_depth",
    "indentation",
    "in_string",
    "name_being_defined",
    "matching_bracket_distance",
)
DISTANCES = ("matching_bracket_distance", "line_position", "sentence_position")
TASKS = (*PYTHON_TASKS, "seen_before", "distance_bucket", "line_position", "sentence_position", "part_of_speech")
DEEPEST = 3  # brackets and levels of indentation that are told apart
MIN_TOKENS = 100  # fewer labelled tokens, to train or to test, make no task
READ_TOKENS = 2**22  # tokens of the stream searched for BOS at a time


class Span(NamedTuple):
    """A document's number, and where it is in the stream: from its first token after BOS to `end` (excluded)."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class ProbeText:
    """Windows of text without the BOS that a model reads in front of them, and the documents that they are of."""

    windows: NDArray[np.int64]  # [window, pos]
    places: NDArray[np.int64]  # of each token in the stream, ascending: [window * pos]
    documents: list[Span]

    def sequences(self, bos: int) -> Int[Tensor, "window bos_and_pos"]:
        """What a model reads."""
        return torch.from_numpy(np.insert(self.windows, 0, bos, axis=1))


@dataclass(frozen=True)
class Words:
    """Words with a part of speech, document after document."""

    document: NDArray[np.int64]
    start: NDArray[np.int64]  # in bytes of the document
    end: NDArray[np.int64]  # excluded
    part_of_speech: NDArray[np.int64]  # any number for each

    def labels(self, document: int, n_bytes: int) -> Labels:
        """The part of speech of each byte of a document, -1 between words."""
        labels = np.full(n_bytes, -1)
        for word in range(*np.searchsorted(self.document, [document, document + 1])):
            labels[self.start[word] : self.end[word]] = self.part_of_speech[word]
        return labels


@dataclass(frozen=True)
class ProbeTask:
    """One label a token of training and test text: 0 .. n_labels - 1, -1 if it has none.

    A label that training text lacks is n_labels in test text: no probe tells it.
    """

    name: str
    n_labels: int
    train: Labels
    test: Labels
    why_absent: str | None


def probe_texts(tokens: Tokens, n_tokens: int, n_train: int, n_test: int) -> tuple[ProbeText, ProbeText]:
    """About `n_train` and `n_test` tokens of validation text in windows of `n_tokens`, without a document in common.

    Test windows are spread over the documents before the BOS that is nearest to the middle, training windows over those
    after it; windows are shorter where a side is. A single document gives no windows. As everywhere, the parts that a
    long document was cut into are documents.
    """
    n = len(tokens.validation)
    opened = document_starts(tokens.validation, tokens.bos)
    middle = int(opened[np.abs(opened - n / 2).argmin()])
    length = min(n_tokens, middle, n - middle)
    train = _spread_windows(tokens.validation, opened, (middle, n), length, n_train)
    return train, _spread_windows(tokens.validation, opened, (0, middle), length, n_test)


def document_starts(stream: TokenStream, bos: int) -> NDArray[np.int64]:
    """The places of BOS."""
    blocks = range(0, len(stream), READ_TOKENS)
    found = [np.flatnonzero(stream.read(at, min(at + READ_TOKENS, len(stream))) == bos) + at for at in blocks]
    return np.concatenate(found)


def _spread_windows(
    stream: TokenStream, opened: NDArray[np.int64], part: tuple[int, int], length: int, n_tokens: int
) -> ProbeText:
    first, last = part
    n_windows = min(-(-n_tokens // length), (last - first) // length) if length else 0
    starts = first + np.arange(n_windows) * (last - first) // max(1, n_windows)
    places = (starts[:, None] + np.arange(length)).ravel()
    ends = [*opened[1:].tolist(), len(stream)]
    documents = [
        Span(number, int(opened[number]) + 1, ends[number])
        for number in np.unique(np.searchsorted(opened, places, side="right") - 1).tolist()
    ]
    return ProbeText(stream.windows(starts, length), places, documents)


def probe_tasks(tokens: Tokens, train: ProbeText, test: ProbeText) -> list[ProbeTask]:
    """Every task, in the order of `TASKS`, with the labels of both texts or why there are none."""
    words = _tagged_words(tokens)
    labels, n_parsed = _label_windows(tokens, words, train)
    test_labels, n_test_parsed = _label_windows(tokens, words, test)
    n_documents = len(train.documents) + len(test.documents)
    absent = absent_tasks(is_python=2 * (n_parsed + n_test_parsed) >= n_documents, is_tagged=words is not None)
    return [label_task(name, labels[name], test_labels[name], absent.get(name)) for name in TASKS]


def _tagged_words(tokens: Tokens) -> Words | None:
    """The words of validation text; None where the corpus has no CoNLL-U files."""
    table = tokens.part_of_speech
    if table is None:
        return None
    numbers = table["part_of_speech"].combine_chunks().dictionary_encode().indices
    document, start, end = (table[column].to_numpy() for column in ("document", "start", "end"))
    return Words(document, start, end, numbers.to_numpy())


def absent_tasks(*, is_python: bool, is_tagged: bool) -> dict[str, str]:
    """The tasks that text of some kind does not have."""
    absent = {} if is_tagged else {"part_of_speech": "the corpus has no CoNLL-U files"}
    if is_python:
        return absent | {"sentence_position": "the text is Python, which has no sentences"}
    return absent | dict.fromkeys(PYTHON_TASKS, "fewer than half of the documents parse as Python")


def _label_windows(tokens: Tokens, words: Words | None, text: ProbeText) -> tuple[dict[str, Labels], int]:
    """Labels of each token of a text for every task, and how many of its documents parse as Python."""
    labels = {name: np.full(len(text.places), -1) for name in TASKS}
    n_parsed = 0
    for document in text.documents:  # one at a time: a document may be much larger than its windows
        of_document = _document_labels(tokens, words, document)
        n_parsed += PYTHON_TASKS[0] in of_document
        inside = slice(*np.searchsorted(text.places, [document.start, document.end]))
        for name, values in of_document.items():
            labels[name][inside] = values[text.places[inside] - document.start]
    place_in_window = np.arange(len(text.places)) % max(1, text.windows.shape[1])
    for name in DISTANCES:
        labels[name] = log_bucket(np.where(labels[name] <= place_in_window, labels[name], -1))
    since_same = tokens_since_same(text.windows, tokens.bos).ravel()
    labels["seen_before"] = np.sign(since_same)
    labels["distance_bucket"] = np.where(since_same > 0, log_bucket(since_same), -1)
    return labels, n_parsed


def _document_labels(tokens: Tokens, words: Words | None, document: Span) -> dict[str, Labels]:
    """Labels of each token of a document; `DISTANCES` are in tokens, not yet in buckets."""
    spelled = [tokens.token_bytes[token] for token in tokens.validation.read(document.start, document.end)]
    text, ends = b"".join(spelled), np.cumsum([len(part) for part in spelled])
    labels = {
        "line_position": tokens_since_last(LINE_END, text, ends),
        "sentence_position": tokens_since_last(SENTENCE_END, text, ends),
    }
    if words is not None:
        labels["part_of_speech"] = words.labels(document.number, len(text))[ends - 1]
    python = python_labels(text.decode())
    return labels if python is None else labels | python_token_labels(python, ends)


def python_token_labels(python: PythonLabels, ends: Labels) -> dict[str, Labels]:
    """Labels of each token that ends at these bytes of a Python text."""
    last = ends - 1
    opening = python.opening_bracket[last]
    distance = np.arange(len(last)) - np.searchsorted(ends, opening, side="right")
    return {
        "lexical_class": python.lexical_class[last],
        "bracket_depth": np.minimum(python.bracket_depth[last], DEEPEST),
        "indentation": np.minimum(python.indentation[last], DEEPEST),
        "in_string": python.in_string[last],
        "name_being_defined": python.name_being_defined[last],
        "matching_bracket_distance": np.where(opening < 0, -1, distance),
    }


def label_task(name: str, train: Labels, test: Labels, why_absent: str | None) -> ProbeTask:
    """The task with labels counted from 0, or without any."""
    values = np.unique(train[train >= 0])
    if why_absent is None and min((train >= 0).sum(), (test >= 0).sum()) < MIN_TOKENS:
        why_absent = f"fewer than {MIN_TOKENS} tokens to train or to test on have a label"
    if why_absent is None and len(values) < 2:
        why_absent = "all tokens to train on have the same label"
    if why_absent is not None:
        return ProbeTask(name, 0, train[:0], test[:0], why_absent)

    def counted(labels: Labels) -> Labels:
        known = np.where(np.isin(labels, values), np.searchsorted(values, labels), len(values))
        return np.where(labels < 0, -1, known)

    return ProbeTask(name, len(values), counted(train), counted(test), None)
