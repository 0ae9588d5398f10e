"""Labels that tokens of any text have: where in a line and a sentence they are, and how far back the same token was."""

import re

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]  # one a token, -1 where there is none

LINE_END = re.compile(rb"\n")
SENTENCE_END = re.compile(rb"[.!?][\"')\]]*\s+|\n\s*\n")  # quotes and brackets may stand between; or a blank line


def tokens_since_last(end: re.Pattern[bytes], text: bytes, ends: Labels) -> Labels:
    """How many tokens before each one its line or sentence began; what ends it belongs to it.

    `ends` says at which byte each token ends, and a token is where its last byte is.
    """
    starts = [0, *(match.end() for match in end.finditer(text))]
    first_tokens = np.searchsorted(ends, starts, side="right")
    current = np.searchsorted(starts, ends - 1, side="right") - 1
    return np.arange(len(ends)) - first_tokens[current]


def tokens_since_same(windows: NDArray[np.int64], bos: int) -> NDArray[np.int64]:
    """How many tokens before each one the same token came last within its window; 0 if it didn't, -1 at BOS."""
    since = np.zeros_like(windows)
    for window, row in zip(windows.tolist(), since, strict=True):
        last: dict[int, int] = {}
        for place, token in enumerate(window):
            row[place] = -1 if token == bos else place - last.get(token, place)
            last[token] = place
    return since


def log_bucket(distance: Labels) -> Labels:
    """0, 1, 2-3, 4-7, 8-15, 16-31, 32-63, 64 and more: buckets 0 to 7; -1 stays."""
    return np.where(distance < 0, -1, np.minimum(np.frexp(np.maximum(distance, 0))[1], 7)).astype(np.int64)
