"""Labels of prose: a text annotated by hand byte by byte, a slow reference, and what a window can tell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_text import write_text

from headstream.tasks.measuring.probe_labels import PROSE_TASKS, probe_tasks
from headstream.tasks.measuring.probe_texts import probe_texts
from headstream.tasks.measuring.prose_labels import prose_labels, tokens_since_same_name
from headstream.tasks.text.token_reading import Tokens

# Each line of a text, and under it: quotations (q), words with a capital (1) or without (0), last bytes of names.
ANNOTATED = """
Ann met Bo. I say "Ann, go" to Bo's dog.
                  qqqqqqqq
111 000 11  1 000  111  00  00 11 0 000
         a                      a
He said: "Go, Jo
         qqqqqqq
11 0000   11  11
               b

No "Ann" in Rome.
   qqqq
11  111  00 1111
               c
"""


def test_prose_byte_by_byte():
    lines = ANNOTATED.strip("\n").split("\n")
    blocks = [lines[0:4], lines[4:8], [""], lines[9:13]]
    text = "\n".join(block[0] for block in blocks)
    width = [len(block[0]) for block in blocks]
    labels = prose_labels(text)

    def shown(values, signs):
        """Labels of each line, without those of ends of lines."""
        at, found = 0, []
        for n in width:
            found.append("".join(" " if value < 0 else signs[value] for value in values[at : at + n]).rstrip())
            at += n + 1
        return found

    expected = [[block[kind].rstrip() if len(block) > 1 else "" for block in blocks] for kind in (1, 2, 3)]
    assert shown(labels.in_quotation, " q") == expected[0]
    assert shown(labels.in_capitalised_word, "01") == expected[1]
    assert shown(labels.name, "abc") == expected[2]


def test_labels_count_bytes_not_characters():
    text = "die Ölmühle „so“, and \N{LEFT DOUBLE QUOTATION MARK}Übermut\N{RIGHT DOUBLE QUOTATION MARK}: Öl"
    labels, raw = prose_labels(text), np.frombuffer(text.encode(), np.uint8)
    assert raw[labels.in_capitalised_word == 1].tobytes().decode() == "ÖlmühleÜbermutÖl"
    quotation = raw[labels.in_quotation == 1].tobytes().decode()
    assert quotation.endswith("Übermut")


@pytest.mark.parametrize("text", ["", '"', "\n\n", '""', "A", '"A'])
def test_shortest_texts_have_labels(text):
    assert {len(values) for values in vars(prose_labels(text)).values()} == {len(text)}


@given(st.text('aB" ', max_size=40))
def test_quotations_equal_those_followed_mark_by_mark(text):
    is_open = False
    expected = [is_open := is_open ^ (character == '"') for character in text]
    assert prose_labels(text).in_quotation.tolist() == expected


@given(st.lists(st.integers(-1, 3), max_size=12))
def test_distances_to_the_same_name_equal_those_searched_one_by_one(names):
    found = tokens_since_same_name(np.array(names, np.int64)).tolist()
    for place, name in enumerate(names):
        before = [place - earlier for earlier in range(place) if names[earlier] == name]
        assert found[place] == (-1 if name < 0 else min(before, default=0))


def test_a_name_before_the_window_was_not_seen_in_it(tmp_path):
    text = "it was Ann who met Bo, and so Ann said " + "that it is late, " * 12 + "to Ann and Ann.\n"
    tokens = Tokens.open(write_text(tmp_path, {f"{i:03}.txt": f"{i} {text}" for i in range(500)}))
    texts = probe_texts(tokens, 31, 10**6, 10**6, 10**6)
    tasks = {task.name: task for task in probe_tasks(tokens, texts)}
    assert [tasks[name].why_absent for name in ("in_capitalised_word", "name_seen_before")] == [None, None]
    assert tasks["in_quotation"].why_absent == "all tokens to train on have the same label"
    assert set(PROSE_TASKS) < {*tasks}
    checked = 0
    for window, labels in zip(
        texts.test.windows, tasks["name_seen_before"].labels[2].reshape(texts.test.windows.shape), strict=True
    ):
        spelled = [tokens.token_bytes[token].decode() for token in window]
        for place in np.flatnonzero(labels >= 0):
            name = "".join(spelled[: place + 1]).rstrip()[-3:].strip()
            seen = name in "".join(spelled[:place]).rpartition("<|bos|>")[2]
            if spelled[place].strip() == name:  # a token of its own, which the window's edge doesn't cut
                assert labels[place] == seen, ("".join(spelled), place)
                checked += 1
    assert checked > 100
