"""The sequences that models are measured on."""

import numpy as np
import pytest
import torch
from tiny import tiny_tokens

from headstream.tasks.measuring.sequences import RepeatCounts, build_stimuli, choose_passage
from headstream.tasks.text.token_reading import Tokens, TokenStream
from headstream.tasks.text.windows import evaluation_text

REPEATS = RepeatCounts(fixed_period=2, random_period=2, seed=0)


@pytest.fixture(scope="module")
def tokens():
    return Tokens.open(tiny_tokens())


def test_text_is_what_models_are_evaluated_on(tokens):
    stimuli = build_stimuli(tokens, 16, windows=6, pattern_windows=3, repeats=REPEATS)
    assert (stimuli.text.shape, stimuli.more_text.shape) == ((3, 17), (3, 17))
    found = zip(torch.cat([stimuli.text, stimuli.more_text]).tolist(), stimuli.documents.tolist(), strict=True)
    wanted = evaluation_text(tokens, 16, 6)
    assert sorted(found) == sorted(zip(wanted.sequences.tolist(), wanted.documents.tolist(), strict=True))


def test_more_windows_than_there_are_come_once_each(tokens):
    stimuli = build_stimuli(tokens, 16, windows=10**5, pattern_windows=10**5, repeats=REPEATS)
    assert len(stimuli.text) == len(evaluation_text(tokens, 16, 10**5).sequences)
    assert len(stimuli.more_text) == 0


def test_the_passage_is_where_bigrams_come_again():
    class Stub(Tokens):
        bos = 0

        def __init__(self):
            text = np.array([0, *range(1, 21), 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, *[7] * 10, *[8] * 20])
            self.validation = TokenStream([text])

    assert choose_passage(Stub(), 11).tolist() == [0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2]
