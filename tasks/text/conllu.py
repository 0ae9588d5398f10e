"""Reads treebanks in CoNLL-U: sentences as they were written, and words with a part of speech.

Source: https://universaldependencies.org/format.html
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

CONLLU_TEXT = re.compile(r"#\s*text\s*=\s*(.*)")
CONLLU_TOKEN = re.compile(r"(\d+)(-\d+|\.\d+)?\t([^\t\n]+)(?:\t[^\t\n]*\t([^\t\n]*))?(.*)")


class Word(NamedTuple):
    """A word with a part of speech: its place in a text, in bytes, `end` excluded."""

    start: int
    end: int
    part_of_speech: str


class Sentence(NamedTuple):
    """A sentence as a line of text, the number of its document in the file, and its words."""

    document: int
    text: str
    words: list[Word]


def sentences(lines: Iterable[tuple[str, str]], reject: Callable[[str, str], None]) -> Iterator[Sentence]:
    """The sentences in some lines, given with their places; `reject` is called with an invalid line and its place."""
    document, as_written, covered = 0, "", 0
    written: list[str] = []
    forms: list[tuple[str, str]] = []
    # The last sentence may lack the blank line that ends a sentence.
    for place, line in itertools.chain(lines, [("the end", "\n")]):
        if not line.strip():
            sentence = (as_written or "".join(written)).strip().lstrip("\ufeff")
            if sentence:
                yield Sentence(document, sentence + "\n", list(_words(sentence, forms)))
            as_written, written, forms, covered = "", [], [], 0
        elif comment := CONLLU_TEXT.match(line):
            as_written = comment[1].strip()
        elif line.startswith("#"):
            document += line.startswith("# newdoc")
        elif token := CONLLU_TOKEN.match(line):
            first, rest, form, part_of_speech, columns = token.groups(default="")
            # 8.1 is an empty node; 3-4 is the joint spelling of words 3 and 4.
            if rest.startswith(".") or int(first) <= covered:
                continue
            covered = int(rest[1:] or 0)
            written.append(form if "SpaceAfter=No" in columns else form + " ")
            forms.append((form, part_of_speech))
        else:
            reject(repr(line[:40]), place)


def _words(sentence: str, forms: Iterable[tuple[str, str]]) -> Iterator[Word]:
    """The forms with a part of speech, as long as the sentence consists of the forms in order; `_` stands for none."""
    place = n_bytes = 0
    for form, part_of_speech in forms:
        while sentence[place : place + 1].isspace():
            n_bytes += len(sentence[place].encode())
            place += 1
        if not sentence.startswith(form, place):
            return
        start, place, n_bytes = n_bytes, place + len(form), n_bytes + len(form.encode())
        if part_of_speech not in ("", "_"):
            yield Word(start, n_bytes, part_of_speech)
