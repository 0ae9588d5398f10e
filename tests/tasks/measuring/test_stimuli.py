"""The sequences that models are measured on."""

import numpy as np
import pytest
import torch
from tiny import tiny_tokens

from tasks.measuring.stimuli import build_stimuli, choose_passage
from tasks.text.token_reading import Tokens, TokenStream

REPEATS = {"fixed_period_sequences": 2, "random_period_sequences": 2, "seed": 0}


@pytest.fixture(scope="module")
def tokens():
    return Tokens.open(tiny_tokens())


def test_text_is_evenly_spread_over_the_first_half(tokens):
    stimuli = build_stimuli(tokens, 16, windows=6, pattern_windows=3, **REPEATS)
    assert (stimuli.text.shape, stimuli.more_text.shape) == ((3, 17), (3, 17))
    windows = torch.cat([stimuli.text, stimuli.more_text])
    assert (windows[:, 0] == tokens.bos).all()
    half = tokens.validation.read(0, len(tokens.validation) // 2)
    starts = [i * len(half) // 6 for i in range(6)]
    expected = {tuple(half[start : start + 16].tolist()) for start in starts}
    assert {tuple(window[1:].tolist()) for window in windows} == expected


def test_more_windows_than_there_are_come_once_each(tokens):
    stimuli = build_stimuli(tokens, 16, windows=10**5, pattern_windows=10**5, **REPEATS)
    assert len(stimuli.text) == len(tokens.validation) // 2 // 16
    assert len(stimuli.more_text) == 0


def test_the_passage_is_where_bigrams_come_again():
    class Stub:
        bos = 0
        validation = TokenStream([np.array([*range(1, 11), 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, *[7] * 10, *[8] * 30])])

    assert choose_passage(Stub, 11).tolist() == [0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2]
