"""The corpus stage: writes documents of the source files, cut, repaired and split by hash, into one Parquet file."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headstream.tasks.errors import TextChanged, UserError
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.text.byte_batches import byte_batches
from headstream.tasks.text.corpus_files import corpus_files, corpus_fingerprint, corpus_label
from headstream.tasks.text.corpus_reading import DOCUMENT_SCHEMA, DOCUMENTS, Document
from headstream.tasks.text.documents import Reader
from headstream.tasks.text.formats import PART_OF_SPEECH, SPLITS, WORD_SCHEMA
from headstream.tasks.text.source_files import Budget

GROUP_BYTES = 4 << 20


def text_split(digest: bytes, validation_fraction: float) -> str:
    """The split of a text by its sha256, so that the same text is never in both."""
    return "validation" if int.from_bytes(digest[:8]) < validation_fraction * 2**64 else "train"


def write_corpus(
    config: CorpusConfig, folder: Path, on_progress: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """Write documents.parquet into `folder` and return facts about it; parts of a long document count as documents.

    `empty` counts documents without text, `skipped` and `replaced` bad parts and records, `left_out` links to nothing,
    pipes and sockets; `sha256` is that of the documents' digests in order. `on_progress` is given the fraction done.
    For CoNLL-U files, the words of validation text are written to part_of_speech.parquet.
    """
    left_out: set[Path] = set()
    files = corpus_files(config, left_out)
    # In the standard library, a file in another encoding is left out.
    rules = config.model_copy(update={"on_bad_text": "skip"}) if config.source else config
    budget = Budget(config.max_expansion, config.max_bytes)
    reader = Reader(rules, budget)
    counts: Counter[str] = Counter()
    everything = hashlib.sha256()
    total, done = sum(file.bytes for file in files), 0
    words: list[tuple[int, int, int, str]] = []
    word_tables: list[pa.Table] = []

    def documents() -> Iterator[tuple[Document, int]]:
        nonlocal done
        for file in files:
            for part in reader.read(file):
                raw = part.text.encode()
                digest = hashlib.sha256(raw).digest()
                everything.update(digest)
                split = text_split(digest, config.validation_fraction)
                if split == "validation":
                    words.extend((counts["validation_documents"], *word) for word in part.words)
                counts[f"{split}_documents"] += 1
                counts[f"{split}_bytes"] += len(raw)
                yield Document(part.document, split, file.name, part.part, part.text), len(raw)
            done += file.bytes
            budget.position = 0

    with pq.ParquetWriter(
        folder / DOCUMENTS, DOCUMENT_SCHEMA, compression="zstd", use_dictionary=["split", "source"]
    ) as writer:
        for rows in byte_batches(documents(), GROUP_BYTES):
            writer.write_table(_table(rows, DOCUMENT_SCHEMA))
            if words:
                word_tables.append(_table(words, WORD_SCHEMA))
                words.clear()
            if on_progress:
                on_progress((done + budget.position) / total)
        facts = {
            "source": corpus_label(config),
            "files": len(files),
            "documents": counts["train_documents"] + counts["validation_documents"],
            "bytes": counts["train_bytes"] + counts["validation_bytes"],
            **{f"{split}_{unit}": counts[f"{split}_{unit}"] for split in SPLITS for unit in ("documents", "bytes")},
            "empty": reader.empty,
            "skipped": reader.skipped,
            "replaced": reader.replaced,
            "left_out": len(left_out),
            "sha256": everything.hexdigest(),
        }
        _require_both_splits(config, facts, reader.last_skipped)
        writer.add_key_value_metadata({"corpus": json.dumps(facts)})
    if word_tables:
        pq.write_table(pa.concat_tables(word_tables), folder / PART_OF_SPEECH, compression="zstd")
    return facts


def write_unchanging_corpus(
    config: CorpusConfig, files: Mapping[str, Any], folder: Path, on_progress: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """Write a corpus as `write_corpus` does, of files that have a known fingerprint.

    Raises:
        TextChanged: they don't have it any more.
    """
    facts = write_corpus(config, folder, on_progress)
    if corpus_fingerprint(config) != files:
        raise TextChanged(
            "The files of the corpus changed while they were read. Run again once they are complete, or read a copy."
        )
    return facts


def _table(rows: Sequence[tuple], schema: pa.Schema) -> pa.Table:
    return pa.table(dict(zip(schema.names, zip(*rows, strict=True), strict=True)), schema)


def _require_both_splits(config: CorpusConfig, facts: Mapping[str, Any], last_skipped: str) -> None:
    size, documents = facts["bytes"], facts["documents"]
    if not size:
        skipped = f" The last one skipped: {last_skipped}." if last_skipped else ""
        raise UserError(
            f"the corpus has no text: all documents in its {facts['files']:,} files are empty or skipped.{skipped}"
        )
    smaller = max(256, min(size // 100, config.document_bytes // 4))
    for split in SPLITS:
        if not facts[f"{split}_documents"]:
            raise UserError(
                f"none of {documents:,} documents ({size:,} bytes) falls into the {split} split. Set document_bytes ="
                f" {smaller} to cut long documents into more parts, or add different text."
            )
