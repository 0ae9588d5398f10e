"""Tokenizers of GGUF files: words split as their rule says, merges in their order, scores as sentencepiece has them."""

import random
from itertools import pairwise
from typing import Any

import pytest
from tokenizers import Tokenizer

from headstream.tasks.importing.gguf_tokenizer import tokenizer_of

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
ALPHABET = [chr(place) for place in (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100), *range(0x100, 0x144))]
MERGES = ["1 2", "Ġ c", "a t", "Ġc at"]


def tokenizer(**changes: Any) -> Tokenizer:
    tokens = ["<|endoftext|>", *ALPHABET, *("".join(merge.split()) for merge in MERGES), "<tool>"]
    types = [CONTROL, *[NORMAL] * (len(tokens) - 2), USER_DEFINED]
    said = {"model": "gpt2", "pre": "gpt-2", "tokens": tokens, "token_type": types, "merges": MERGES} | changes
    return tokenizer_of({f"tokenizer.ggml.{key}": value for key, value in said.items()})


@pytest.mark.parametrize(
    ("rule", "pieces"),
    [
        ("gpt-2", ["12", "12", "Ġcat", "Ġ", "Ġcat", "s"]),
        ("smollm", ["1", "2", "1", "2", "Ġcat", "Ġ", "Ġcat", "s"]),
        ("llama-bpe", ["12", "1", "2", "Ġcat", "Ġ", "Ġcat", "s"]),  # digits by threes
    ],
)
def test_words_and_digits_are_split_by_the_named_rule(rule, pieces):
    assert tokenizer(pre=rule).encode("1212 cat  cats").tokens == pieces


def test_any_text_decodes_to_itself_control_tokens_spelled_out_included():
    text = "A naïve 猫 <|endoftext|>\n\t of 3 <tool>s "
    found = tokenizer()
    ids = found.encode(text).ids
    assert found.decode(ids, skip_special_tokens=False) == text
    assert found.token_to_id("<|endoftext|>") == 0
    assert 0 not in ids
    assert found.token_to_id("<tool>") in ids


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pre": "dbrx"}, "splits words by the rule 'dbrx'"),
        ({"model": "t5"}, "a tokenizer of the kind 't5'"),
        ({"merges": ["q q"]}, "a merge 'q q'"),
        ({"merges": None}, "no list tokenizer.ggml.merges"),
        ({"tokens": [3, 4]}, "no list tokenizer.ggml.tokens"),
        ({"tokens": ["a", "a"], "token_type": [1, 1]}, "2 tokens, 1 different ones"),
        ({"token_type": [1]}, "and 1 types"),
        ({"model": "llama", "scores": [0.5]}, "and 1 scores"),
    ],
)
def test_what_isnt_known_or_contradicts_itself_is_named(changes, words):
    with pytest.raises(ValueError, match=words):
        tokenizer(**changes)


def sentencepiece(**changes: Any) -> dict[str, Any]:
    pieces = ["▁", *"abcdt", "▁a", "ca", "at", "▁ca", "cat", "▁cat", "ab", "bc"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(pieces)]
    scores = [0.0] * 259 + [-1000.0] * 6 + [-float(rank) for rank in range(len(pieces) - 6)]
    said = {"model": "llama", "tokens": tokens, "token_type": types, "scores": scores} | changes
    return {f"tokenizer.ggml.{key}": value for key, value in said.items()}


def joined_by_score(text: str, scores: dict[str, float]) -> list[str]:
    """Sentencepiece's rule as it is written: join the neighbours whose union scores highest, the first of equals."""
    parts = list(text)
    while True:
        unions = [(scores["".join(pair)], -i) for i, pair in enumerate(pairwise(parts)) if "".join(pair) in scores]
        if not unions:
            return parts
        i = -max(unions)[1]
        parts[i : i + 2] = ["".join(parts[i : i + 2])]


def test_neighbours_are_joined_by_score():
    said = sentencepiece()
    scores = dict(zip(said["tokenizer.ggml.tokens"][259:], said["tokenizer.ggml.scores"][259:], strict=True))
    found, rng = tokenizer_of(said), random.Random(0)
    for _ in range(200):
        text = "".join(rng.choices(" abcdt", k=rng.randrange(1, 25)))
        assert found.encode(text).tokens == joined_by_score("▁" + text.replace(" ", "▁"), scores)
        assert found.decode(found.encode(text).ids) == text


def test_unknown_signs_are_spelled_in_bytes_and_a_space_comes_first_if_the_file_says_so():
    assert tokenizer_of(sentencepiece()).encode("é").tokens == ["▁", "<0xC3>", "<0xA9>"]
    bare = tokenizer_of(sentencepiece(add_space_prefix=False))
    assert bare.encode("at").tokens == ["at"]
    assert bare.decode(bare.encode(" at").ids) == " at"
