"""Labels of tokens: snippets by hand, slow references, and of which text they are."""

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import tiny_tokens
from written_text import write_text

from headstream.tasks.measuring.probe_labels import (
    PROSE_TASKS,
    PYTHON_TASKS,
    TASKS,
    label_task,
    probe_tasks,
    python_token_labels,
)
from headstream.tasks.measuring.probe_texts import probe_texts
from headstream.tasks.measuring.python_labels import python_labels
from headstream.tasks.measuring.text_labels import (
    LINE_END,
    SENTENCE_END,
    log_bucket,
    tokens_since_last,
    tokens_since_same,
)
from headstream.tasks.text.token_reading import Tokens

# Each line of a Python text, and under it, byte by byte: lexical class (keyword, name, 1 number, string, comment,
# operator), open brackets, whether a string is open, level of indentation, names that are bound (1) or not (0).

ANNOTATED = r'''
class K(B, k=1):
kkkkk nono no1oo
0000000111111100
0000000000000000
0000000000000000
------1-0--0----
    """It's"""
    ssssssssss
00000000000000
00000011111110
11111111111111
--------------
    a: int = -.5
    no nnn o o11
0000000000000000
0000000000000000
1111111111111111
----1--000------
# own line
cccccccccc
0000000000
0000000000
----------
----------
    def f(self, *p, q=(1,
    kkk nonnnno ono noo1o
0000000001111111111111222
0000000000000000000000000
1111111111111111111111111
--------1-1111---1--1----
        [2])):  # end
        o1oooo  ccccc
222222223321000000000
000000000000000000000
111111111111111111111
---------------------
        x = f"{self.a!r} (b" + rb'\''
        n o ssssssssssssssss o ssssss
0000000000000000000000000000000000000
0000000000000111111111111110000001110
2222222222222222222222222222222222222
--------1----------------------------
        for i, j in p: self.y = i
        kkk no n kk no nnnnon o n
000000000000000000000000000000000
000000000000000000000000000000000
222222222222222222222222222222222
------------1--1----0--0000-0---0
        return {x: lambda z: z}
        kkkkkk ono kkkkkk no no
0000000000000001111111111111110
0000000000000000000000000000000
2222222222222222222222222222222
----------------0---------1--0-
'''
CLASS_LETTERS = " kn1sco"


def annotations():
    """The source text, and the lines of each kind of label."""
    lines = ANNOTATED.strip("\n").split("\n")
    source, *labels = (lines[kind::6] for kind in range(6))
    return "\n".join(source), labels


def as_lines(labels, text, signs="0123456789"):
    """Labels of the bytes of ASCII text, a line a line."""
    written = "".join(
        "\n" if c == "\n" else "-" if label < 0 else signs[label] for c, label in zip(text, labels, strict=True)
    )
    return written.split("\n")


@pytest.mark.parametrize(
    ("kind", "field", "signs"),
    [
        (0, "lexical_class", CLASS_LETTERS),
        (1, "bracket_depth", "0123"),
        (2, "in_string", "01"),
        (3, "indentation", "012"),
        (4, "name_being_defined", "01"),
    ],
)
def test_python_labels_byte_by_byte(kind, field, signs):
    text, expected = annotations()
    found = as_lines(getattr(python_labels(text), field), text, signs)
    assert [line.rstrip() for line in found] == [line.rstrip() for line in expected[kind]]


def test_labels_count_bytes_not_characters():
    text = "größe = 'ß' + f(x)  # ä\nö = lambda: (1)"
    labels, raw = python_labels(text), np.frombuffer(text.encode(), np.uint8)
    assert raw[labels.lexical_class == CLASS_LETTERS.index("n")].tobytes().decode() == "größefxö"
    assert raw[labels.name_being_defined == 1].tobytes().decode() == "größeö"
    assert raw[labels.in_string == 1].tobytes().decode() == "'ß"
    assert raw[labels.opening_bracket[labels.opening_bracket >= 0]].tobytes() == b"(("


def test_lines_without_statements_have_no_level():
    text = "if x:\n    y\n\n    # own\n  \n    (z,\n\n  # inside\n  t)\nw"
    levels = as_lines(python_labels(text).indentation, text, "01")
    assert levels == ["00000", "11111", "", "---------", "--", "1111111", "", "1" * 10, "1111", "0"]


@pytest.mark.parametrize("text", ["The river runs.", "x = (", "  x\n y", "'''", "\x0c(\x0c" * 3, "(" * 500])
def test_what_is_not_python_has_no_labels(text):
    assert python_labels(text) is None


NAMES = ["".join(parts) for parts in product(("na", "ta", "mi", "vel", "or", "ren"), repeat=3)]
NOT_PYTHON = {
    "nothing": ["", "\n", "# only"],
    "made-up names": NAMES,
    "a list of words": ["\n".join(NAMES), ", ".join(NAMES), str(NAMES)],
    "numbers": ["1", "-3.5e7\n", "1, 2, 3\n4, 5, 6\n", "\n".join(map(str, range(99)))],
    "JSON": ['{"a": [1, 2.5, {"b": null}], "c": true}', "[[1, 2], [3, 4]]", '"word"'],
    "settings": ["[tool.poetry]\nname = 'x'\nlines = [1, 2]\n", "key: value\nother: 3\n", "colour=red\nsize = 3"],
    "formulas": ["f(x) + g(y)", "y = sin(x)", "add(3, multiply(4, 5))", "P(x) & Q(y)"],
    "prose": ["river", "The river runs.", "word(s)", "pass", "return home", "global warming", "raise money", "a is b"],
}


@pytest.mark.parametrize(
    "text", [pytest.param(t, id=f"{kind}-{t[:9]!r}") for kind in NOT_PYTHON for t in NOT_PYTHON[kind]]
)
def test_that_a_text_parses_is_no_evidence_of_python(text):
    assert python_labels(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *("import os", "from a import b", "def f(x): return x", "class A: x = 1", "if x: y()", "f = lambda x: x"),
        *("for x in y: print(x)", "while x: x -= 1", "with open(p) as f: t = f.read()", "print([n for n in range(3)])"),
        *("try: x\nexcept: y", "async def f(): await g()", "import x \\\n , y", "\x0cimport x\n\x0c\ny = 2"),
        *('import re\nr = "\\d"', "s = sum(w for w in x)\n"),
    ],
)
def test_short_python_has_labels(text):
    labels = python_labels(text)
    assert {len(values) for values in vars(labels).values()} == {len(text)}


# Lexical class, open brackets, indentation, whether a string is open, binding, tokens back to the opening bracket.
TOKENS = [
    ("def", "k000--"),
    (" f", "n0001-"),
    ("(", "o100--"),
    ("a", "n1001-"),
    (",", "o100--"),
    (" b", "n1001-"),
    ("=[", "o200--"),
    ("]", "o100-1"),
    ("):", "o000--"),
    ("\n   ", " 010--"),
    (" return", "k010--"),
    (' "', "s011--"),
    ('("', "s010--"),
    (" +", "o010--"),
    (" g", "n0100-"),
    ("([{(", "o310--"),
    ("a", "n3100-"),
    (")", "o310-2"),
    ("}])", "o010-3"),
    (" or", "k010--"),
    (" h()", "o010-0"),
]


def test_python_labels_token_by_token():
    pieces, expected = zip(*TOKENS, strict=True)
    found = python_token_labels(python_labels("".join(pieces)), np.cumsum([len(piece) for piece in pieces]))
    assert tuple(found) == PYTHON_TASKS
    for labels, column in zip(found.values(), zip(*expected, strict=True), strict=True):
        signs = CLASS_LETTERS if labels is found["lexical_class"] else "0123456789"
        assert ["-" if label < 0 else signs[label] for label in labels] == [*column]


# Any text.


def pieces_and_ends(text, seed):
    """A text cut into pieces at random, as tokens might."""
    rng = random.Random(seed)
    pieces = []
    while text:
        n = rng.randint(1, 4)
        pieces.append(text[:n])
        text = text[n:]
    return pieces, np.cumsum([len(piece) for piece in pieces], dtype=np.int64)


@given(st.text("ab\n. ", min_size=1, max_size=60), st.integers(0, 9))
def test_line_positions_equal_those_counted_one_by_one(text, seed):
    pieces, ends = pieces_and_ends(text, seed)
    expected, line_start = [], 0  # the token that holds the line's first byte
    at_end = False  # whether the last token ended a line
    for place, piece in enumerate(pieces):
        if at_end:
            line_start = place
        if "\n" in piece[:-1]:
            line_start = place
        expected.append(place - line_start)
        at_end = piece[-1] == "\n"
    assert tokens_since_last(LINE_END, text.encode(), ends).tolist() == expected


def test_sentence_positions():
    pieces = ["It", " rains", ".", " Is", " it", " 3", ".", "5", ' mm?"', " No", "\n", "\n", "Dr", ".\n", "e", ".", "g"]
    found = tokens_since_last(SENTENCE_END, "".join(pieces).encode(), np.cumsum([len(piece) for piece in pieces]))
    #                It rains .  Is it 3 . 5 mm?" No \n \n Dr .\n e . g
    assert found.tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 5, 0, 1, 2, 0, 1, 0, 1, 2]


@given(st.lists(st.lists(st.integers(0, 3), min_size=7, max_size=7), min_size=1, max_size=3))
def test_distances_to_the_same_token_equal_those_searched_one_by_one(windows):
    found = tokens_since_same(np.array(windows), bos=0)
    for window, row in zip(windows, found.tolist(), strict=True):
        for place, token in enumerate(window):
            before = [place - earlier for earlier in range(place) if window[earlier] == token]
            assert row[place] == (-1 if token == 0 else min(before, default=0))


def test_buckets_double():
    distances = np.array([-1, 0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 10**6])
    assert log_bucket(distances).tolist() == [-1, 0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]


# Which text is read, and what there is to tell of it.

WORDS = ("river", "stream", "head", "water", "bed", "flows")


def python_files(n=240, seed=0):
    """Small Python modules."""
    rng = random.Random(seed)
    files = {}
    for number in range(n):
        lines = ["import os"]
        for _ in range(rng.randint(2, 5)):
            a, b, c = rng.sample(WORDS, 3)
            lines += ["", f"def {a}({b}, {c}=({number}, [1])):", f'    """The {a} of {b}."""', f"    # {c}"]
            lines += [f"    for {c} in os.{b}({c}):", f"        {a} = f'{{{b}}}' + {c}[{rng.randint(0, 99)}]"]
            lines += [f"    return {a}({b})[{c}(1)]"]
        files[f"{number:03}.py"] = "\n".join(lines) + "\n"
    return files


@pytest.fixture(scope="module")
def python_tokens(tmp_path_factory):
    return Tokens.open(write_text(tmp_path_factory.mktemp("python"), python_files()))


def absences(tokens):
    tasks = probe_tasks(tokens, probe_texts(tokens, 63, 10**6, 10**6, 10**6))
    assert tuple(task.name for task in tasks) == TASKS
    return {task.name: task.why_absent for task in tasks if task.why_absent}


def test_prose_has_no_python_tasks():
    absent = absences(Tokens.open(tiny_tokens()))
    # The words of this text are random: it has no names and no quotations.
    assert set(absent) == {*PYTHON_TASKS, *PROSE_TASKS[1:], "part_of_speech"}
    assert absent["in_string"] == "no more than half of the tokens are of Python source"
    assert absent["part_of_speech"] == "the corpus has no CoNLL-U files"


def test_python_has_python_tasks_and_none_of_prose(python_tokens):
    assert set(absences(python_tokens)) == {"part_of_speech", *PROSE_TASKS}


@pytest.mark.parametrize("kind", [kind for kind in NOT_PYTHON if kind != "nothing"])
def test_what_is_no_python_has_no_python_tasks(tmp_path, kind):
    pieces = NOT_PYTHON[kind]
    files = {f"{i:03}.txt": pieces[i % len(pieces)] + " " * (i // len(pieces)) for i in range(216)}
    tokens = Tokens.open(write_text(tmp_path, files))
    assert {*PYTHON_TASKS} <= set(absences(tokens))


def test_documents_that_do_not_parse_have_no_python_labels(tmp_path):
    files = python_files() | {f"{number}.txt": "It is no code, but prose. " * 7 for number in range(9)}
    tokens = Tokens.open(write_text(tmp_path, files))
    texts = probe_texts(tokens, 31, 10**6, 10**6, 10**6)
    tasks = {task.name: task for task in probe_tasks(tokens, texts)}
    assert tasks["in_string"].why_absent is None
    for number, text in enumerate(texts):
        prose = np.zeros(len(text.places), bool)
        for document in text.documents:
            ids = tokens.validation.read(document.start, document.end)
            if tokens.tokenizer.decode(ids.tolist()).startswith("It is"):
                prose |= (text.places >= document.start) & (text.places < document.end)
        labels = tasks["in_string"].labels[number]
        bos = text.windows.ravel() == tokens.bos
        assert ((labels < 0) == (prose | bos)).all()


def test_labels_of_windows_are_those_of_their_documents(python_tokens):
    tokens = python_tokens
    texts = probe_texts(tokens, 31, 10**6, 10**6, 10**6)
    tasks, test = {task.name: task for task in probe_tasks(tokens, texts)}, texts.test
    checked = 0
    for document in test.documents:
        ids = tokens.validation.read(document.start, document.end).tolist()
        text = tokens.tokenizer.decode(ids)
        pieces = [tokens.token_bytes[token] for token in ids]
        assert b"".join(pieces) == text.encode()
        python = python_labels(text)
        for place in np.flatnonzero((test.places >= document.start) & (test.places < document.end)):
            token = test.places[place] - document.start
            last = len(b"".join(pieces[: token + 1])) - 1
            assert tasks["lexical_class"].labels[2][place] == python.lexical_class[last]
            assert tasks["bracket_depth"].labels[2][place] == min(python.bracket_depth[last], 3)
            line = text.encode()[:last].rpartition(b"\n")[0]
            begins = len(line) + 1 if b"\n" in text.encode()[:last] else 0
            back = next(n for n in range(token + 1) if len(b"".join(pieces[: token - n])) <= begins)
            visible = back <= place % 31
            assert tasks["line_position"].labels[2][place] == (log_bucket(np.array(back)) if visible else -1)
            checked += 1
    assert checked > 1000


def test_labels_are_counted_by_what_comes_in_training(tmp_path):
    tokens = Tokens.open(tiny_tokens())
    for task in probe_tasks(tokens, probe_texts(tokens, 31, 3000, 3000, 3000)):
        if task.why_absent is None:
            train, *others = task.labels
            assert np.unique(train[train >= 0]).tolist() == list(range(task.n_labels))
            for labels in others:
                assert labels.min() >= -1
                assert labels.max() <= task.n_labels


def test_a_label_that_training_lacks_is_none_that_a_probe_tells():
    train, test = np.array([1, 5] * 60 + [-1]), np.array([5, 3, 1, 9, -1] * 40)
    task = label_task("t", [train, train, test], None)
    assert task.n_labels == 2
    assert task.labels[0].tolist() == [0, 1] * 60 + [-1]
    assert task.labels[2].tolist() == [1, 2, 0, 2, -1] * 40


@pytest.mark.parametrize(
    ("train", "test", "why"),
    [
        ([1, 2] * 49, [1, 2] * 500, "fewer than 100 tokens"),
        ([1, 2] * 500, [1, 2] * 49 + [-1] * 900, "fewer than 100 tokens"),
        ([3] * 500, [3, 4] * 500, "all tokens to train on have the same label"),
    ],
)
def test_too_little_to_tell_apart_is_no_task(train, test, why):
    task = label_task("t", [np.array(labels) for labels in (train, train, test)], None)
    assert why in task.why_absent
    assert (task.n_labels, task.labels) == (0, [])
