"""The token stage: trains a byte-level BPE tokenizer, writes token shards, and reads them by memory map."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib.stride_tricks import sliding_window_view
from tokenizers import Encoding, Tokenizer, decoders, models, pre_tokenizers, trainers

from tasks.errors import UserError
from tasks.study.tokenizer_config import TokenizerConfig
from tasks.text.corpus import PART_OF_SPEECH, SPLITS, byte_batches, corpus_facts, read_documents

BOS = "<|bos|>"
BATCH_BYTES = 2 << 20  # two are in memory at a time, and an encoding takes about 100 bytes a token
SHARD_BYTES = 256 << 20

# Pieces end where the pretokenizer ends words, except in words of over 512 characters, on which the trainer would take
# quadratic time.
TRAINING_PIECE = re.compile(r".{1,511}\S(?=[ \n])|.{1,512}", re.DOTALL)


def write_tokens(
    config: TokenizerConfig, corpus_folder: Path, folder: Path, on_progress: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """Writes tokenizer.json, token shards of both splits, tokens.json and token_counts.npy; returns what they hold.

    BOS precedes each document. A small corpus may not reach the vocabulary asked for: the facts hold the one reached.
    `on_progress` is given the fraction of documents encoded. What the corpus has of CoNLL-U files is copied.
    """
    corpus = corpus_facts(corpus_folder)
    tokenizer = train_tokenizer(config, corpus_folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    vocabulary = tokenizer.get_vocab_size()
    dtype = np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.uint32)
    counts = {split: np.zeros(vocabulary, np.int64) for split in SPLITS}
    shards: dict[str, list[dict[str, Any]]] = {split: [] for split in SPLITS}
    bos, done = tokenizer.token_to_id(BOS), 0
    for split in SPLITS:
        texts = (document.text for document in read_documents(corpus_folder, split))
        for ids in encode(tokenizer, texts, dtype):
            _append(ids, folder, split, shards[split])
            in_batch = np.bincount(ids, minlength=vocabulary)
            counts[split] += in_batch
            done += int(in_batch[bos])
            if on_progress:
                on_progress(done / corpus["documents"])
    np.save(folder / "token_counts.npy", counts["train"])
    if (corpus_folder / PART_OF_SPEECH).exists():
        shutil.copyfile(corpus_folder / PART_OF_SPEECH, folder / PART_OF_SPEECH)
    index = {"vocabulary": vocabulary, "bos": bos, "dtype": dtype.name, "shards": shards}
    (folder / "tokens.json").write_text(json.dumps(index, indent=1))
    n_tokens = {split: int(counts[split].sum()) for split in SPLITS}
    return {
        "vocabulary": vocabulary,
        **{f"{split}_tokens": n_tokens[split] for split in SPLITS},
        "bytes_per_token": corpus["train_bytes"] / (n_tokens["train"] - int(counts["train"][bos])),
        "tokenizer_sha256": hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest(),
    }


def train_tokenizer(config: TokenizerConfig, corpus_folder: Path) -> Tokenizer:
    """Byte-level BPE over a sample of whole training documents, spread evenly; BOS is token 0."""
    share = config.sample_bytes / corpus_facts(corpus_folder)["train_bytes"]

    def sample() -> Iterator[list[str]]:
        seen = taken = 0
        for document in read_documents(corpus_folder, "train"):
            size = len(document.text.encode())
            if taken <= share * seen:
                taken += size
                yield TRAINING_PIECE.findall(document.text)
            seen += size

    tokenizer = _byte_level(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocabulary,
        special_tokens=[BOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sample(), trainer)
    # In a new tokenizer BOS is not special, so that a text that spells it out is still text. No merge leads to it: the
    # pretokenizer separates its letters from its signs.
    return _byte_level(tokenizer.model)


def _byte_level(model: models.Model) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def encode(tokenizer: Tokenizer, texts: Iterable[str], dtype: npt.DTypeLike) -> Iterator[np.ndarray]:
    """The token ids of the texts, BOS before each, in batches of about `BATCH_BYTES` of text."""
    bos = (tokenizer.token_to_id(BOS),)

    def ids(encodings: list[Encoding]) -> np.ndarray:
        flat = chain.from_iterable(chain(bos, encoding.ids) for encoding in encodings)
        return np.fromiter(flat, dtype, sum(map(len, encodings)) + len(encodings))

    # One thread encodes a batch, on all cores, while this one reads the next and converts the last.
    with ThreadPoolExecutor(max_workers=1) as pool:
        batches = byte_batches(((text, len(text.encode())) for text in texts), BATCH_BYTES)
        encodings = (pool.submit(tokenizer.encode_batch_fast, batch) for batch in batches)
        ahead = next(encodings, None)
        while ahead:
            current, ahead = ahead, next(encodings, None)
            yield ids(current.result())


def _append(ids: np.ndarray, folder: Path, split: str, shards: list[dict[str, Any]]) -> None:
    """Appends to the last of `shards`, and to new ones when it is full."""
    limit = SHARD_BYTES // ids.itemsize
    while len(ids):
        if not shards or shards[-1]["tokens"] == limit:
            shards.append({"name": f"{split}-{len(shards):05}.bin", "tokens": 0})
        shard = shards[-1]
        head, ids = np.split(ids, [limit - shard["tokens"]])
        with (folder / shard["name"]).open("ab") as file:
            head.tofile(file)
        shard["tokens"] += len(head)


class TokenStream:
    """The tokens of one split: its shards, read as one array."""

    def __init__(self, shards: Sequence[np.ndarray], dtype: npt.DTypeLike = np.uint16):
        self._shards = shards or [np.empty(0, dtype)]
        self._ends = np.cumsum([len(shard) for shard in self._shards])
        self._starts = self._ends - [len(shard) for shard in self._shards]

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, start: int, stop: int) -> np.ndarray:
        """Tokens `start` to `stop` (excluded): a view of the file where they lie in one shard."""
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"0 <= start <= stop <= {len(self)} must hold, got start={start}, stop={stop}")
        pieces = [
            shard[max(start - first, 0) : stop - first]
            for shard, first, end in zip(self._shards, self._starts, self._ends, strict=True)
            if first < stop and start < end
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces or [self._shards[0][:0]])

    def windows(self, starts: npt.ArrayLike, length: int) -> npt.NDArray[np.int64]:
        """The `length` tokens from each of `starts`: [len(starts), length]."""
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
        """At most `n_windows` windows without a token in common, evenly spread over a part of the stream.

        A part, given as fractions of the stream, that is too short for one window gives the nearest.
        """
        first, last = (int(fraction * len(self)) for fraction in part)
        if last - first < length <= len(self):
            first = min(first, len(self) - length)
            last = first + length
        n_windows = min(n_windows, (last - first) // length)
        return self.windows(first + np.arange(n_windows) * (last - first) // max(1, n_windows), length)


class Tokens:
    """What `write_tokens` wrote: `train` and `validation` streams, `bos`, `vocabulary`, and the tokenizer."""

    def __init__(self, folder: Path, vocabulary: int, bos: int, dtype: str, shards: dict[str, list[dict[str, Any]]]):
        self.folder, self.vocabulary, self.bos = folder, vocabulary, bos
        self.train, self.validation = (
            TokenStream([_map(folder / shard["name"], dtype, shard["tokens"]) for shard in shards[split]], dtype)
            for split in SPLITS
        )

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Maps the shards in `folder`, reading none of them."""
        return cls(folder, **json.loads((folder / "tokens.json").read_text()))

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each token occurs in the training split: [vocabulary]."""
        counts: npt.NDArray[np.int64] = np.load(self.folder / "token_counts.npy")
        return counts

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.from_file(str(self.folder / "tokenizer.json"))

    @cached_property
    def part_of_speech(self) -> pa.Table | None:
        """Words of validation text, in columns of `WORD_SCHEMA`; None where the corpus has no CoNLL-U files."""
        path = self.folder / PART_OF_SPEECH
        return pq.read_table(path) if path.exists() else None

    @cached_property
    def token_bytes(self) -> list[bytes]:
        """What each token spells; of BOS, which spells nothing, its name."""
        tokens = self.tokenizer.get_vocab()
        return [bytes(_BYTES[sign] for sign in token) for token in sorted(tokens, key=tokens.__getitem__)]

    def token_labels(self) -> list[str]:
        r"""Each token as people read it in a plot: a space as `·`, a line end as `\n`, half a character as `\xe2`."""
        return [_label(spelled) for spelled in self.token_bytes]


def _map(path: Path, dtype: str, n_tokens: int) -> np.ndarray:
    return np.asarray(np.memmap(path, dtype, mode="r", shape=(n_tokens,)))


# Byte-level BPE spells a byte as its own character where that prints, and as one from U+0100 upwards where it doesn't.
_PRINTED = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_BYTES = {chr(byte): byte for byte in _PRINTED} | {
    chr(0x100 + index): byte for index, byte in enumerate(sorted(set(range(256)) - set(_PRINTED)))
}


def _label(spelled: bytes) -> str:
    text = spelled.decode(errors="backslashreplace").replace(" ", "·")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def require_context(tokens: Tokens, n_ctx: int) -> None:
    """Refuses a corpus in which a split cannot fill one context of `n_ctx` tokens and their targets."""
    for split, stream in zip(SPLITS, (tokens.train, tokens.validation), strict=True):
        if len(stream) <= n_ctx:
            raise UserError(
                f"each split must hold more than n_ctx = {n_ctx:,} tokens, got {len(stream):,} for {split}. Add text, "
                "lower n_ctx, or " + ("raise" if split == "validation" else "lower") + " validation_fraction."
            )
