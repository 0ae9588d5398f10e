import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from headstream.tasks.text.token_spelling import Readable, distinct_labels, label_of, spelled_tokens

PLOTS = Readable({" ": "·"}, "·")
PAGE = Readable({sign: sign for sign in " \n\t"}, "·⏎⇥")
CONFUSED = [
    (" ", "·"),
    ("\n", "\\n"),
    ("\t", "\\t"),
    ("·", "\\u00b7"),
    ("\\\n", "\\\\n"),
    (b"\xe2", "\\xe2"),
    (b"\xa0", "\xa0"),
    ("\xa0", "\\xa0"),
    ("\u200b", "\\u200b"),
    ("\U0001f9ff", "\\U0001f9ff"),
    ("\\", "\\\\"),
    (b"\xff\\", b"\\\xff"),
    ("⏎", "\n"),
    ("⇥", "\t"),
]


def as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


@pytest.mark.parametrize("readable", [PLOTS, PAGE])
@pytest.mark.parametrize(("one", "other"), CONFUSED)
def test_what_could_be_confused_has_labels_of_its_own(one, other, readable):
    assert label_of(as_bytes(one), readable) != label_of(as_bytes(other), readable)


PIECES = [b" ", b"\n", b"\\", b"n", b"x", b"u", b"0", b"b7", b"\xa0", b"\xc2", "·".encode(), "⏎".encode(), b"\0"]


@pytest.mark.parametrize("readable", [PLOTS, PAGE])
def test_no_two_spellings_of_three_pieces_have_one_label(readable):
    spelled = {b"".join(pieces) for n in (1, 2, 3) for pieces in itertools.product(PIECES, repeat=n)}
    assert len({label_of(each, readable) for each in spelled}) == len(spelled) > 2_000


@given(st.text())
def test_a_label_for_plots_is_one_printable_line(text):
    assert label_of(text.encode(), PLOTS).isprintable()


def test_ids_that_spell_the_same_are_told_apart():
    vocabulary = {"<s>": 0, "<0x41>": 1, "A": 2, "\u2581": 3, " ": 4, "<0x42>": 5, "<unused 6>": 7}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    spelled = spelled_tokens(tokenizer, 8)
    assert distinct_labels(tokenizer, spelled, PLOTS) == [
        *("<s>", "A #1", "A", "·", "· #4", "B", "<unused·6>", "<unused·6> #7")
    ]
