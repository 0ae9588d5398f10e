"""Pairs as a tokenizer reads them: what is compared, and why a pair is dropped."""

import re

import pytest
import torch
from tiny import tiny_tokens

from headstream.tasks.prompts.asked_pairs import score_row
from headstream.tasks.prompts.kept_pairs import kept_of_text, kept_repeats
from headstream.tasks.prompts.prompt_pair import PromptPair
from headstream.tasks.prompts.shipped_prompts import REPEATS, SHIPPED, drawn_pairs
from headstream.tasks.prompts.tokenised_pairs import tokenised
from headstream.tasks.study.analyses.prompts_config import PromptSetConfig
from headstream.tasks.text.token_reading import Tokens

WORDS: list[str] = []


def encode(text: str) -> list[int]:
    """Words with the space before them, letters of `xyz` apart, as numbers."""
    found = re.findall(r" ?[a-w]+| ?[xyz]| ", text)
    WORDS.extend(word for word in dict.fromkeys(found) if word not in WORDS)
    return [WORDS.index(word) for word in found]


def read(prompt, corrupt, answers, wrong, n_ctx=20):
    return tokenised(PromptPair(prompt, corrupt, answers, wrong, "t"), encode, (99,), n_ctx)


def test_answers_are_compared_at_the_first_token_that_differs():
    found = read("the dogs", "the dog", (" are",), (" is",))
    assert found.clean == (99, *encode("the dogs"))
    assert found.corrupt == (99, *encode("the dog"))
    assert (found.answers, found.wrong) == (tuple(encode(" are")), tuple(encode(" is")))
    found = read("so", "no", ("xxy",), ("xxz", "xxx"))
    assert found.clean == (99, *encode("soxx")[:3])
    assert found.corrupt[1:] == tuple(encode("noxx"))
    assert (found.answers, found.wrong) == (tuple(encode("y")), tuple(encode("z") + encode("x")))


def test_several_answers_that_share_a_token_with_the_other_side_leave_it_out():
    found = read("so", "no", ("xx", "yx"), ("xy", "zx"))
    assert (found.answers, found.wrong) == (tuple(encode("y")), tuple(encode("z")))


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (("so", "so", (" a",), (" b",)), "the prompts are the same"),
        (("so", "so no", (" a",), (" b",)), "the prompts have 1 and 2 tokens"),
        (("so", "no", ("a",), (" b",)), "an answer merges with the end of its prompt into other tokens"),
        (("so", "no", ("",), (" b",)), "an answer merges with the end of its prompt into other tokens"),
        (("so", "no", ("x",), ("xy",)), "one answer is the beginning of another"),
        (("so", "no", (" a",), (" a",)), "one answer is the beginning of another"),
    ],
)
def test_why_a_pair_is_dropped(pair, reason):
    assert read(*pair) == reason


def test_a_prompt_that_is_longer_than_the_context_is_dropped():
    assert read("so so", "no no", (" a",), (" b",), n_ctx=2) == "the prompt has 3 tokens, and the context 2"


@pytest.fixture(scope="module")
def tokens():
    return Tokens.open(tiny_tokens())


def test_repeats_differ_in_the_earlier_copy_of_the_last_token_alone(tokens):
    kept = kept_repeats(tokens, torch.tensor(tokens.counts), 32, 30, seed=3)
    assert len(kept.kept) == 30
    assert kept.why_refused is None
    for each in kept.kept:
        clean, corrupt, (answer,), (wrong,) = each.tokens
        (place,) = [i for i, (a, b) in enumerate(zip(clean, corrupt, strict=True)) if a != b]
        assert clean[place] == clean[-1]
        assert corrupt[place] not in clean
        assert clean[place + 1] == answer
        assert wrong in clean
        assert wrong != answer
        assert clean[0] == tokens.bos
    assert kept == kept_repeats(tokens, torch.tensor(tokens.counts), 32, 30, seed=3)
    assert sum(len(pairs) for _, pairs in kept.by_length()) == 30
    assert kept_repeats(tokens, torch.tensor(tokens.counts), 8, 30, seed=3).why_refused.startswith("0 of 0 pairs")


def test_pairs_that_a_tokenizer_reads_differently_are_counted_with_their_reason(tokens):
    pairs = [PromptPair("ab", "ab", ("c",), ("d",), "t")] * 3
    kept = kept_of_text(pairs, tokens, 64, 200)
    assert kept.why_refused == "0 of 3 pairs are left, and 8 are needed; most often, the prompts are the same"


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != REPEATS])
def test_sets_that_ship_have_many_pairs_in_eight_templates_that_differ_little(name):
    pairs = drawn_pairs(name, 0)
    assert pairs == drawn_pairs(name, 0) != drawn_pairs(name, 1)
    assert len({pair.template for pair in pairs}) == 8
    assert len(pairs) > 500
    for pair in pairs:
        assert pair.prompt != pair.corrupt
        assert not {*pair.answers} & {*pair.wrong}
        assert abs(len(pair.prompt.split()) - len(pair.corrupt.split())) <= 1


def test_every_set_that_ships_has_a_name_in_studies():
    assert {PromptSetConfig(set=name).name for name in SHIPPED} == {*SHIPPED}


def test_the_interval_of_accuracy_ends_where_accuracy_does():
    odds = torch.stack([torch.ones(12), -torch.ones(12)])
    odds[0, 0] = -1.0
    row = score_row(odds, torch.arange(12) // 4)  # one of three templates has one of four pairs wrong
    assert row["accuracy"] == pytest.approx(11 / 12)
    assert 0 < row["accuracy_low"] < row["accuracy"]
    assert row["accuracy_high"] == 1
