"""The questions that probes are asked: a label of each token of their texts.

A token's label is decided by its last byte. What a window of text can't tell is left out: how far back something was
that came before the window.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstream.tasks.measuring.probe_texts import ProbeText, ProbeTexts, Span
from headstream.tasks.measuring.prose_labels import ProseLabels, prose_labels, tokens_since_same_name
from headstream.tasks.measuring.python_labels import PythonLabels, python_labels
from headstream.tasks.measuring.text_labels import (
    LINE_END,
    SENTENCE_END,
    Labels,
    log_bucket,
    tokens_since_last,
    tokens_since_same,
)
from headstream.tasks.text.token_reading import Tokens

PYTHON_TASKS = (
    "lexical_class",
    "bracket_depth",
    "indentation",
    "in_string",
    "name_being_defined",
    "matching_bracket_distance",
)
DISTANCES = ("matching_bracket_distance", "line_position", "sentence_position")
PROSE_TASKS = ("sentence_position", "in_quotation", "in_capitalised_word", "name_seen_before")
TASKS = (*PYTHON_TASKS, "seen_before", "distance_bucket", "line_position", *PROSE_TASKS, "part_of_speech")
MAX_DEPTH = 3  # brackets and levels of indentation that are told apart
MIN_PYTHON_SHARE = 0.5  # share of tokens in Python source above which text counts as Python
MIN_TOKENS = 100  # fewer labelled tokens in a text make no task


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
    """One label a token of each text, in the order of `ProbeTexts`: 0 .. n_labels - 1, -1 if it has none.

    A label that training text lacks is n_labels in the others: no probe tells it.
    """

    name: str
    n_labels: int
    labels: list[Labels]
    why_absent: str | None


def probe_tasks(tokens: Tokens, texts: ProbeTexts) -> list[ProbeTask]:
    """Every task, in the order of `TASKS`, with the labels of all texts or why there are none."""
    words = _tagged_words(tokens)
    labels = [_label_windows(tokens, words, text) for text in texts]
    n_python = sum(int((of_text["lexical_class"] >= 0).sum()) for of_text in labels)
    n_tokens = sum(int((text.windows != tokens.bos).sum()) for text in texts)
    absent = absent_tasks(is_python=n_python > MIN_PYTHON_SHARE * n_tokens, is_tagged=words is not None)
    return [label_task(name, [of_text[name] for of_text in labels], absent.get(name)) for name in TASKS]


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
        return absent | dict.fromkeys(PROSE_TASKS, "the text is Python, and no prose")
    return absent | dict.fromkeys(PYTHON_TASKS, "no more than half of the tokens are of Python source")


def _label_windows(tokens: Tokens, words: Words | None, text: ProbeText) -> dict[str, Labels]:
    """Labels of each token of a text for every task."""
    labels = {name: np.full(len(text.places), -1) for name in TASKS}
    for document in text.documents:  # one at a time: a document may be much larger than its windows
        inside = slice(*np.searchsorted(text.places, [document.start, document.end]))
        for name, values in _document_labels(tokens, words, document).items():
            labels[name][inside] = values[text.places[inside] - document.start]
    place_in_window = np.arange(len(text.places)) % max(1, text.windows.shape[1])
    for name in DISTANCES:
        labels[name] = log_bucket(np.where(labels[name] <= place_in_window, labels[name], -1))
    since_name = labels["name_seen_before"]
    labels["name_seen_before"] = np.where(since_name <= place_in_window, np.sign(since_name), 0)
    since_same = tokens_since_same(text.windows, tokens.bos).ravel()
    labels["seen_before"] = np.sign(since_same)
    labels["distance_bucket"] = np.where(since_same > 0, log_bucket(since_same), -1)
    return labels


def _document_labels(tokens: Tokens, words: Words | None, document: Span) -> dict[str, Labels]:
    """Labels of each token of a document; `DISTANCES` and how far back names were are in tokens."""
    spelled = [tokens.token_bytes[token] for token in tokens.validation.read(document.start, document.end)]
    text, ends = b"".join(spelled), np.cumsum([len(part) for part in spelled])
    labels = {
        "line_position": tokens_since_last(LINE_END, text, ends),
        "sentence_position": tokens_since_last(SENTENCE_END, text, ends),
        **prose_token_labels(prose_labels(text.decode()), ends),
    }
    if words is not None:
        labels["part_of_speech"] = words.labels(document.number, len(text))[ends - 1]
    python = python_labels(text.decode())
    return labels if python is None else labels | python_token_labels(python, ends)


def prose_token_labels(prose: ProseLabels, ends: Labels) -> dict[str, Labels]:
    """Labels of each token that ends at these bytes of a text; of names, how many tokens back the same one ended."""
    last = ends - 1
    return {
        "in_quotation": prose.in_quotation[last],
        "in_capitalised_word": prose.in_capitalised_word[last],
        "name_seen_before": tokens_since_same_name(prose.name[last]),
    }


def python_token_labels(python: PythonLabels, ends: Labels) -> dict[str, Labels]:
    """Labels of each token that ends at these bytes of a Python text."""
    last = ends - 1
    opening = python.opening_bracket[last]
    distance = np.arange(len(last)) - np.searchsorted(ends, opening, side="right")
    return {
        "lexical_class": python.lexical_class[last],
        "bracket_depth": np.minimum(python.bracket_depth[last], MAX_DEPTH),
        "indentation": np.minimum(python.indentation[last], MAX_DEPTH),
        "in_string": python.in_string[last],
        "name_being_defined": python.name_being_defined[last],
        "matching_bracket_distance": np.where(opening < 0, -1, distance),
    }


def label_task(name: str, texts: Sequence[Labels], why_absent: str | None) -> ProbeTask:
    """The task with labels counted from 0, or without any."""
    train = texts[0]
    values = np.unique(train[train >= 0])
    if why_absent is None and min((labels >= 0).sum() for labels in texts) < MIN_TOKENS:
        why_absent = f"fewer than {MIN_TOKENS} tokens to train, to select or to test on have a label"
    if why_absent is None and len(values) < 2:
        why_absent = "all tokens to train on have the same label"
    if why_absent is not None:
        return ProbeTask(name, 0, [], why_absent)

    def counted(labels: Labels) -> Labels:
        known = np.where(np.isin(labels, values), np.searchsorted(values, labels), len(values))
        return np.where(labels < 0, -1, known)

    return ProbeTask(name, len(values), [counted(labels) for labels in texts], None)
