"""The text that most stages measure models on, and other text for the mean outputs of ablated heads.

Both come from the same documents in the same proportions: consecutive windows of a split's documents go to one part and
to the other in turn.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from headstream.models.bos import n_bos
from headstream.models.bos_in_tensors import opened
from headstream.models.stimuli import RunningText
from headstream.tasks.text.token_reading import Tokens


def evaluation_text(tokens: Tokens, n_tokens: int, n_windows: int) -> RunningText:
    """At most `n_windows` sequences of BOS and `n_tokens` tokens of validation text, on which models are measured.

    For models without BOS, they have one more token of text.
    """
    return _spread_text(tokens, "validation", n_tokens, n_windows, part=0)


def reference_text(tokens: Tokens, n_tokens: int, n_windows: int) -> RunningText:
    """At most `n_windows` other sequences of validation text, for outputs that replace those of ablated heads.

    Validation text with room for a single sequence gives the same one again.
    """
    return _spread_text(tokens, "validation", n_tokens, n_windows, part=1)


def training_text(tokens: Tokens, n_tokens: int, n_windows: int) -> RunningText:
    """At most `n_windows` sequences of training text, chosen as those of `evaluation_text` are."""
    return _spread_text(tokens, "train", n_tokens, n_windows, part=0)


def _spread_text(tokens: Tokens, split: str, n_tokens: int, n_windows: int, part: int) -> RunningText:
    """Windows of one of the two parts, evenly spread over it, in the order of the stream."""
    stream, skipped = tokens.stream(split), n_bos(tokens.bos)
    length = n_tokens + 1 - skipped
    starts, documents = _windows(tokens.document_starts(split), len(stream), length, skipped)
    own = np.arange(min(part, len(starts) - 1), len(starts), 2)
    n_windows = min(n_windows, len(own))
    chosen = own[np.arange(n_windows) * len(own) // n_windows]
    sequences = opened(torch.from_numpy(stream.windows(starts[chosen], length)), tokens.bos)
    return RunningText(sequences, torch.from_numpy(documents[chosen]))


def _windows(
    opening: NDArray[np.int64], end: int, length: int, skipped: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The start of each window that a stream has room for, and the number of the document that it begins in.

    Windows lie within a document, after its BOS of `skipped` tokens, evenly spread over it. Only documents too short
    for a window share one with short ones that follow; if all of them are too short together, they have none.
    """
    long = np.diff(opening, append=end) - skipped >= length
    apart = long.copy()  # True for a document with windows of its own, or the first of some that share them
    apart[1:] |= long[:-1]
    apart[0] = True
    first = opening[apart] + skipped
    room = np.append(opening[apart][1:], end) - first
    n = room // length
    place = np.arange(n.sum()) - np.repeat(n.cumsum() - n, n)
    starts = np.repeat(first, n) + place * np.repeat(room, n) // np.repeat(n, n)
    return starts, np.searchsorted(opening, starts, side="right") - 1
