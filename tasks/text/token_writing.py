"""The token stage: writes both splits as shards of token ids, by a tokenizer trained on them or a given one."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding, Tokenizer, decoders, models, pre_tokenizers, trainers

from headstream.models.bos import NO_BOS, n_bos
from headstream.tasks.results.tables import write_table
from headstream.tasks.storage.sealing import file_sha256
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.text.bigram_counts import count_losses
from headstream.tasks.text.byte_batches import byte_batches
from headstream.tasks.text.corpus_reading import corpus_facts, read_documents
from headstream.tasks.text.formats import DOCUMENT_STARTS, PART_OF_SPEECH, SPLITS
from headstream.tasks.text.repeated_text import repeat_shares
from headstream.tasks.text.token_reading import Tokens

BOS = "<|bos|>"
BATCH_BYTES = 2 << 20  # two are in memory at a time, and an encoding takes about 100 bytes per token
SHARD_BYTES = 256 << 20

# Pieces end where the pretokenizer ends words, except in words of over 512 characters, which would take the trainer
# quadratic time.
TRAINING_PIECE = re.compile(r".{1,511}\S(?=[ \n])|.{1,512}", re.DOTALL)


def write_tokens(
    config: TokenizerConfig, corpus_folder: Path, folder: Path, on_progress: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """Train a tokenizer and write the corpus's tokens by it, as `write_tokens_of` does.

    A small corpus may not reach the vocabulary asked for: the row holds the one reached.
    """
    tokenizer = train_tokenizer(config, corpus_folder)
    bos = tokenizer.get_vocab()[BOS]
    return write_tokens_of(tokenizer, bos, tokenizer.get_vocab_size(), corpus_folder, folder, on_progress)


def write_given_tokens(
    tokenizer: str,
    bos: int,
    vocabulary: int,
    corpus_folder: Path,
    folder: Path,
    on_progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Write the corpus' tokens by a given tokenizer, JSON, as `write_tokens_of` does; special tokens are text in it."""
    given = Tokenizer.from_str(tokenizer)
    given.no_truncation()
    given.no_padding()
    given.encode_special_tokens = True
    return write_tokens_of(given, bos, vocabulary, corpus_folder, folder, on_progress)


def write_tokens_of(
    tokenizer: Tokenizer,
    bos: int,
    vocabulary: int,
    corpus_folder: Path,
    folder: Path,
    on_progress: Callable[[float], None] | None,
) -> dict[str, Any]:
    """Write tokenizer.json, shards of both splits, tokens.json, token_counts.npy, and tables on them.

    Returns the row of `corpora`, with the rows of `corpus_repeats` as `repeats`. BOS, if there is one, precedes each
    document; otherwise the starts of documents are written. `vocabulary` may exceed the tokenizer's. `on_progress` is
    given the fraction of documents encoded. Tagged words of CoNLL-U files are copied from the corpus.
    """
    corpus = corpus_facts(corpus_folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    dtype = np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.uint32)
    counts = {split: np.zeros(vocabulary, np.int64) for split in SPLITS}
    shards: dict[str, list[dict[str, Any]]] = {split: [] for split in SPLITS}
    done = 0
    for split in SPLITS:
        texts = (document.text for document in read_documents(corpus_folder, split))
        lengths = []
        for ids, in_documents in encode(tokenizer, texts, dtype, bos):
            _append(ids, folder, split, shards[split])
            counts[split] += np.bincount(ids, minlength=vocabulary)
            lengths.append(in_documents)
            done += len(in_documents)
            if on_progress:
                on_progress(done / corpus["documents"])
        if bos == NO_BOS:
            ends = np.concatenate([[0], *lengths]).cumsum()
            np.save(folder / DOCUMENT_STARTS.format(split), ends[:-1])
    np.save(folder / "token_counts.npy", counts["train"])
    if (corpus_folder / PART_OF_SPEECH).exists():
        shutil.copyfile(corpus_folder / PART_OF_SPEECH, folder / PART_OF_SPEECH)
    index = {"vocabulary": vocabulary, "bos": bos, "dtype": dtype.name, "shards": shards}
    (folder / "tokens.json").write_text(json.dumps(index, indent=1))
    written = Tokens.open(folder)
    n_tokens = {split: int(counts[split].sum()) for split in SPLITS}
    described = ("source", "documents", "bytes", *(f"{split}_documents" for split in SPLITS))
    described += ("empty", "skipped", "replaced", "left_out")
    row = {
        "corpus_id": _content_sha256(folder)[:12],
        **{name: corpus[name] for name in described},
        "text_sha256": corpus["sha256"],
        "vocabulary": vocabulary,
        **{f"{split}_tokens": n_tokens[split] for split in SPLITS},
        "bytes_per_token": corpus["train_bytes"] / (n_tokens["train"] - n_bos(bos) * corpus["train_documents"]),
        "tokenizer_sha256": file_sha256(folder / "tokenizer.json"),
        **count_losses(written.train, written.validation, written.counts),
    }
    repeats = repeat_shares(written)
    write_table(folder, "corpora", [row])
    write_table(folder, "corpus_repeats", [{"corpus_id": row["corpus_id"], **each} for each in repeats])
    return row | {"repeats": repeats}


def _content_sha256(folder: Path) -> str:
    """A hash of everything that readers of tokens use, independent of where the text came from."""
    files = {path.name: file_sha256(path) for path in sorted(folder.iterdir())}
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()


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
    # In a new tokenizer BOS is not special, so that text that spells it out stays text. No merge leads to it, since the
    # pretokenizer separates its letters from its punctuation.
    return _byte_level(tokenizer.model)


def _byte_level(model: models.Model) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def encode(
    tokenizer: Tokenizer, texts: Iterable[str], dtype: npt.DTypeLike, bos: int
) -> Iterator[tuple[np.ndarray, npt.NDArray[np.int64]]]:
    """The token ids of texts, each after BOS if there is one, in batches of about `BATCH_BYTES` of text.

    With each batch comes the number of tokens of each text, BOS included.
    """
    opening = [bos] * n_bos(bos)

    def ids(encodings: list[Encoding]) -> tuple[np.ndarray, npt.NDArray[np.int64]]:
        flat = chain.from_iterable(chain(opening, encoding.ids) for encoding in encodings)
        lengths = np.fromiter(map(len, encodings), np.int64, len(encodings)) + len(opening)
        return np.fromiter(flat, dtype, lengths.sum()), lengths

    # One thread encodes a batch, on all cores, while this one reads the next and converts the last.
    with ThreadPoolExecutor(max_workers=1) as pool:
        batches = byte_batches(((text, len(text.encode())) for text in texts), BATCH_BYTES)
        alone = partial(tokenizer.encode_batch_fast, add_special_tokens=False)
        encodings = (pool.submit(alone, batch) for batch in batches)
        ahead = next(encodings, None)
        while ahead:
            current, ahead = ahead, next(encodings, None)
            yield ids(current.result())


def _append(ids: np.ndarray, folder: Path, split: str, shards: list[dict[str, Any]]) -> None:
    """Append to the last of `shards`, and to new ones when it is full."""
    limit = SHARD_BYTES // ids.itemsize
    while len(ids):
        if not shards or shards[-1]["tokens"] == limit:
            shards.append({"name": f"{split}-{len(shards):05}.bin", "tokens": 0})
        shard = shards[-1]
        head, ids = np.split(ids, [limit - shard["tokens"]])
        with (folder / shard["name"]).open("ab") as file:
            head.tofile(file)
        shard["tokens"] += len(head)
