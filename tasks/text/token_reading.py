"""Reads tokens from disk: memory-mapped streams of both splits, and the tokenizer that made them."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib.stride_tricks import sliding_window_view
from tokenizers import Tokenizer

from headstream.models.bos import NO_BOS
from headstream.tasks.errors import UserError
from headstream.tasks.text.formats import DOCUMENT_STARTS, PART_OF_SPEECH, SPLITS
from headstream.tasks.text.vocabulary import Vocabulary

SEARCHED_TOKENS = 2**24  # searched for documents at a time


class TokenStream:
    """The tokens of one split: its shards, read as one array."""

    def __init__(self, shards: Sequence[np.ndarray], dtype: npt.DTypeLike = np.uint16):
        self._shards = shards or [np.empty(0, dtype)]
        self._ends = np.cumsum([len(shard) for shard in self._shards])
        self._starts = self._ends - [len(shard) for shard in self._shards]

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, start: int, stop: int) -> np.ndarray:
        """Tokens `start` to `stop` (excluded): a view of the file if they lie in one shard."""
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"0 <= start <= stop <= {len(self)} must hold, got start={start}, stop={stop}")
        pieces = [
            shard[max(start - first, 0) : stop - first]
            for shard, first, end in zip(self._shards, self._starts, self._ends, strict=True)
            if first < stop and start < end
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces or [self._shards[0][:0]])

    def windows(self, starts: npt.ArrayLike, length: int) -> npt.NDArray[np.int64]:
        """The `length` tokens from each of `starts` on: [len(starts), length]."""
        starts = np.asarray(starts)
        if len(starts) and not 0 <= starts.min() <= starts.max() <= len(self) - length:
            raise IndexError(f"starts must lie in 0..{len(self) - length}, got {starts.min()}..{starts.max()}")
        windows = np.empty((len(starts), length), np.int64)
        home = np.searchsorted(self._ends, starts, side="right")
        inside = starts + length <= self._ends[home]
        for index in np.unique(home[inside]):
            rows = inside & (home == index)
            windows[rows] = sliding_window_view(self._shards[index], length)[starts[rows] - self._starts[index]]
        for row in np.flatnonzero(~inside):
            windows[row] = self.read(starts[row], starts[row] + length)
        return windows

    def spread_windows(
        self, n_windows: int, length: int, part: tuple[float, float] = (0.0, 1.0)
    ) -> npt.NDArray[np.int64]:
        """At most `n_windows` disjoint windows, evenly spread over a part of the stream, given as fractions.

        A part that is too short for one window gives the nearest one.
        """
        first, last = (int(fraction * len(self)) for fraction in part)
        if last - first < length <= len(self):
            first = min(first, len(self) - length)
            last = first + length
        n_windows = min(n_windows, (last - first) // length)
        return self.windows(first + np.arange(n_windows) * (last - first) // max(1, n_windows), length)


class Tokens(Vocabulary):
    """Everything that the token stage wrote: `train` and `validation` streams, `bos`, `vocabulary`, the tokenizer."""

    def __init__(self, folder: Path, vocabulary: int, bos: int, dtype: str, shards: dict[str, list[dict[str, Any]]]):
        self.folder, self.vocabulary, self.bos = folder, vocabulary, bos
        self.train, self.validation = (_stream(folder, dtype, shards[split]) for split in SPLITS)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Map the shards in `folder` into memory without reading them."""
        return cls(folder, **json.loads((folder / "tokens.json").read_text()))

    def stream(self, split: str) -> TokenStream:
        """The tokens of a split, by its name."""
        return self.train if split == "train" else self.validation

    def document_starts(self, split: str) -> npt.NDArray[np.int64]:
        """The index in its stream where each document of a split begins: at its BOS, if there is one."""
        if self.bos == NO_BOS:
            starts: npt.NDArray[np.int64] = np.load(self.folder / DOCUMENT_STARTS.format(split))
            return starts
        stream = self.stream(split)
        blocks = range(0, len(stream), SEARCHED_TOKENS)
        found = [
            np.flatnonzero(stream.read(at, min(at + SEARCHED_TOKENS, len(stream))) == self.bos) + at for at in blocks
        ]
        return np.concatenate(found)

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """The number of occurrences of each token in the training split: [vocabulary]."""
        counts: npt.NDArray[np.int64] = np.load(self.folder / "token_counts.npy")
        return counts

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """What turned the text into tokens."""
        return Tokenizer.from_file(str(self.folder / "tokenizer.json"))

    @cached_property
    def part_of_speech(self) -> pa.Table | None:
        """Words of validation text, in the columns of `WORD_SCHEMA`; None if the corpus has no CoNLL-U files."""
        path = self.folder / PART_OF_SPEECH
        return pq.read_table(path) if path.exists() else None


def _stream(folder: Path, dtype: str, shards: Sequence[Mapping[str, Any]]) -> TokenStream:
    return TokenStream([_map(folder / shard["name"], dtype, shard["tokens"]) for shard in shards], dtype)


def _map(path: Path, dtype: str, n_tokens: int) -> np.ndarray:
    return np.asarray(np.memmap(path, dtype, mode="r", shape=(n_tokens,)))


def require_context(tokens: Tokens, n_ctx: int) -> None:
    """Refuse a corpus in which a split cannot fill one context of `n_ctx` tokens and their targets."""
    for split, stream in zip(SPLITS, (tokens.train, tokens.validation), strict=True):
        if len(stream) <= n_ctx:
            change = "raise" if split == "validation" else "lower"
            raise UserError(
                f"the {split} split has {len(stream):,} tokens, and needs more than n_ctx = {n_ctx:,}. Add text, lower"
                f" n_ctx, or {change} validation_fraction."
            )
