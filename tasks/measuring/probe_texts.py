"""The texts that probes are trained on, that the best head is chosen on, and that probes are tested on.

The three have no document in common. Few tokens are needed of much text, so every document gives about as many: what is
independent of one another are documents, not tokens.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from headstream.models.bos import n_bos
from headstream.models.bos_in_tensors import opened
from headstream.tasks.text.token_reading import Tokens


class Span(NamedTuple):
    """A document's number, and where it is in the stream: from its first token after BOS to `end` (excluded)."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class ProbeText:
    """Windows of text without the BOS that a model may read in front of them, and the documents that they are of."""

    windows: NDArray[np.int64]  # [window, pos]
    places: NDArray[np.int64]  # of each token in the stream, ascending: [window * pos]
    documents: list[Span]

    def sequences(self, bos: int) -> Int[Tensor, "window bos_and_pos"]:
        """The tokens that a model reads."""
        return opened(torch.from_numpy(self.windows), bos)

    def document_numbers(self) -> NDArray[np.int64]:
        """The number of each token's document: [window * pos]."""
        numbers, ends = (np.array([document[field] for document in self.documents], int) for field in (0, 2))
        return numbers[np.searchsorted(ends, self.places, side="right")]


class ProbeTexts(NamedTuple):
    """Text for each purpose."""

    train: ProbeText
    selection: ProbeText
    test: ProbeText


def probe_texts(tokens: Tokens, n_tokens: int, n_train: int, n_selection: int, n_test: int) -> ProbeTexts:
    """About as many tokens of validation text as asked for, in windows of `n_tokens`, for each purpose.

    Of eight documents two are to train, one to select and five to test: what errs most is the number of documents
    tested on. Windows are shorter where a part is. Fewer than three documents give no windows. As everywhere, the parts
    that a long document was cut into are documents.
    """
    starts = tokens.document_starts("validation")
    lengths = np.diff(starts, append=len(tokens.validation))
    parts = np.resize([2, 0, 1, 2, 2, 0, 2, 2], len(starts))
    length = min(n_tokens, *(int(lengths[parts == part].sum()) for part in range(3)))
    return ProbeTexts(
        *(
            _windows_of(tokens, np.flatnonzero(parts == part), starts, lengths, length, n)
            for part, n in enumerate((n_train, n_selection, n_test))
        )
    )


def _windows_of(
    tokens: Tokens,
    numbers: NDArray[np.int64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    length: int,
    n_tokens: int,
) -> ProbeText:
    """Windows of these documents, put one after the other, each with the BOS before it, if there is one."""
    if not length:
        return ProbeText(np.empty((0, 0), np.int64), np.empty(0, np.int64), [])
    ends = lengths[numbers].cumsum()  # in the joined documents
    first_tokens = np.arange(int(ends[-1]) // length) * length
    home = np.searchsorted(ends, first_tokens, side="right")
    chosen = dealt(home, -(-n_tokens // length))
    joined = (first_tokens[chosen, None] + np.arange(length)).ravel()
    of = np.searchsorted(ends, joined, side="right")
    places = joined + (starts + lengths)[numbers][of] - ends[of]
    windows = np.empty(len(places), np.int64)
    documents = []
    for index in np.unique(of).tolist():
        start, end = int(starts[numbers[index]]), int((starts + lengths)[numbers[index]])
        inside = of == index
        windows[inside] = tokens.validation.read(start, end)[places[inside] - start]
        documents.append(Span(int(numbers[index]), start + n_bos(tokens.bos), end))
    return ProbeText(windows.reshape(-1, length), places, documents)


def dealt(home: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Indices of at most `n` windows, about as many of each home as the others, and evenly spread over it."""
    _, first, of, size = np.unique(home, return_index=True, return_inverse=True, return_counts=True)
    most = bisect_left(range(n), min(n, len(home)), key=lambda most: np.minimum(size, most).sum())
    quota, place = np.minimum(size, most)[of], np.arange(len(home)) - first[of]
    chosen = np.flatnonzero((place + 1) * quota // size[of] > place * quota // size[of])
    n = min(n, len(chosen))
    return chosen[np.arange(n) * len(chosen) // n]
