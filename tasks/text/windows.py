"""Which text most stages measure models on, and which other text the means of ablated outputs are taken on.

Both are of the same documents in the same proportions: windows of a split lie in its documents one after the other, and
go to the one part and to the other in turn.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from models.stimuli import RunningText
from tasks.text.token_reading import Tokens, TokenStream

READ_TOKENS = 2**24  # tokens searched for documents at a time


def evaluation_text(tokens: Tokens, n_tokens: int, n_windows: int) -> RunningText:
    """At most `n_windows` sequences of BOS and `n_tokens` tokens of validation text: what models are measured on."""
    return _spread_text(tokens.validation, tokens.bos, n_tokens, n_windows, part=0)


def reference_text(tokens: Tokens, n_tokens: int, n_windows: int) -> RunningText:
    """At most `n_windows` other sequences of it: for what takes the place of an ablated head's output.

    Validation text that has room for a single sequence gives the same one again.
    """
    return _spread_text(tokens.validation, tokens.bos, n_tokens, n_windows, part=1)


def training_text(tokens: Tokens, n_tokens: int, n_windows: int) -> RunningText:
    """At most `n_windows` sequences of training text, chosen as those of `evaluation_text` are."""
    return _spread_text(tokens.train, tokens.bos, n_tokens, n_windows, part=0)


def _spread_text(stream: TokenStream, bos: int, n_tokens: int, n_windows: int, part: int) -> RunningText:
    """Windows of one of two parts, evenly spread over it, in the order of the stream."""
    starts, documents = _windows(document_starts(stream, bos), len(stream), n_tokens)
    own = np.arange(min(part, len(starts) - 1), len(starts), 2)
    n_windows = min(n_windows, len(own))
    chosen = own[np.arange(n_windows) * len(own) // n_windows]
    sequences = np.insert(stream.windows(starts[chosen], n_tokens), 0, bos, axis=1)
    return RunningText(torch.from_numpy(sequences), torch.from_numpy(documents[chosen]))


def _windows(opened: NDArray[np.int64], end: int, length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each window that a stream has room for begins, and the number of the document that it begins in.

    Windows lie in one document without its BOS, evenly spread over it. Only documents too short for a window share
    theirs with short ones that follow; what is too short even so has none.
    """
    long = np.diff(opened, append=end) > length
    apart = long.copy()  # whether a document has windows of its own, or is the first of some that share them
    apart[1:] |= long[:-1]
    apart[0] = True
    first = opened[apart] + 1
    room = np.append(opened[apart][1:], end) - first
    n = room // length
    place = np.arange(n.sum()) - np.repeat(n.cumsum() - n, n)
    starts = np.repeat(first, n) + place * np.repeat(room, n) // np.repeat(n, n)
    return starts, np.searchsorted(opened, starts, side="right") - 1


def document_starts(stream: TokenStream, bos: int) -> NDArray[np.int64]:
    """The places of BOS, with which every stream begins."""
    blocks = range(0, len(stream), READ_TOKENS)
    found = [np.flatnonzero(stream.read(at, min(at + READ_TOKENS, len(stream))) == bos) + at for at in blocks]
    return np.concatenate(found)
