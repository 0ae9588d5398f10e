"""Labels of every byte of prose by its signs: open quotations, capitalised words and names that come again."""

import re
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from headstream.tasks.measuring.text_labels import SENTENCE_END

WORD = re.compile(r"[^\W\d_]+")
QUOTATION_MARK = re.compile('["\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}]|\n\\s*\n')
MIN_NAME_LETTERS = 2  # letters: the pronoun I is no name

_Labels = NDArray[np.int64]  # one a byte, -1 where there is none


@dataclass(frozen=True)
class ProseLabels:
    """Labels of each byte; what is open is so after the byte."""

    in_quotation: _Labels  # 1 from an opening double quotation mark to the closing one, or to the paragraph's end
    in_capitalised_word: _Labels  # of words: 1 where the first letter is a capital
    name: _Labels  # of the last byte of names: a number for each name

    # A name is a capitalised word of MIN_NAME_LETTERS letters or more that opens neither a sentence nor a quotation.


def prose_labels(text: str) -> ProseLabels:
    """Labels of each byte of any text."""
    byte = [*accumulate((len(character.encode()) for character in text), initial=0)]
    labels = ProseLabels(*(np.full(byte[-1], fill) for fill in (0, -1, -1)))
    opening = {0, *(match.end() for match in SENTENCE_END.finditer(text.encode()))}
    numbers: dict[str, int] = {}
    for word in WORD.finditer(text):
        start, end = byte[word.start()], byte[word.end()]
        capitalised = word[0][0].isupper()
        labels.in_capitalised_word[start:end] = capitalised
        opens = start in opening or text[word.start() - 1] in '"\N{LEFT DOUBLE QUOTATION MARK}'
        if capitalised and len(word[0]) >= MIN_NAME_LETTERS and not opens:
            labels.name[end - 1] = numbers.setdefault(word[0], len(numbers))
    opened: int | None = None
    for mark in QUOTATION_MARK.finditer(text + "\n\n"):
        if opened is not None:
            labels.in_quotation[opened : byte[min(mark.start(), len(text))]] = 1
        opens = mark[0] == "\N{LEFT DOUBLE QUOTATION MARK}" or (mark[0] == '"' and opened is None)
        opened = byte[mark.start()] if opens else None
    return labels


def tokens_since_same_name(names: _Labels) -> _Labels:
    """How many tokens before each one that ends a name the same name ended last, 0 if it didn't; -1 of other tokens."""
    since, last = np.full_like(names, -1), dict[int, int]()
    for place in np.flatnonzero(names >= 0).tolist():
        since[place] = place - last.get(names[place], place)
        last[names[place]] = place
    return since
