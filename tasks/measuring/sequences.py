"""The sequences that models are measured on: text, repeated random tokens, and one passage to look at."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headstream.models.repeats import fixed_period_repeats, random_period_repeats, repeated_bigrams
from headstream.models.stimuli import Stimuli
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.windows import evaluation_text

MAX_PASSAGES = 4096  # windows among which the passage is chosen


@dataclass(frozen=True)
class RepeatCounts:
    """How many sequences of repeated random tokens are drawn, and with which seed."""

    fixed_period: int
    random_period: int
    seed: int


def build_stimuli(tokens: Tokens, n_ctx: int, *, windows: int, pattern_windows: int, repeats: RepeatCounts) -> Stimuli:
    """The sequences that every model of one corpus and n_ctx is measured on.

    Losses are measured on all windows of text, patterns on `pattern_windows` of them.
    """
    text, documents = evaluation_text(tokens, n_ctx, windows)
    n_patterns = min(pattern_windows, len(text))
    for_patterns = torch.zeros(len(text), dtype=torch.bool)
    for_patterns[torch.arange(n_patterns) * len(text) // n_patterns] = True
    generator = torch.Generator().manual_seed(repeats.seed)
    drawn_from = torch.from_numpy(np.asarray(tokens.counts, dtype=np.int64)), tokens.bos, n_ctx
    return Stimuli(
        bos=tokens.bos,
        text=text[for_patterns],
        more_text=text[~for_patterns],
        documents=torch.cat([documents[for_patterns], documents[~for_patterns]]),
        fixed_period=fixed_period_repeats(*drawn_from, repeats.fixed_period, generator),
        random_period=random_period_repeats(*drawn_from, repeats.random_period, generator),
    )


def choose_passage(tokens: Tokens, n_tokens: int) -> NDArray[np.int64]:
    """The window of validation text in which most different bigrams come again: no model has a say in it."""
    windows = evaluation_text(tokens, n_tokens - 1, MAX_PASSAGES).sequences
    return windows[repeated_bigrams(windows, tokens.bos).argmax()].numpy()  # the first of equals
