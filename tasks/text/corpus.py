"""The corpus stage: finds source files and writes their documents, split by hash, to one Parquet file."""

import hashlib
import itertools
import json
import os
import platform
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tasks.errors import UserError
from tasks.study.corpus_config import CorpusConfig
from tasks.text.documents import Reader, SourceFile, format_suffix, reason

T = TypeVar("T")

DOCUMENTS = "documents.parquet"
PART_OF_SPEECH = "part_of_speech.parquet"
SPLITS = ("train", "validation")
GROUP_BYTES = 4 << 20
SCHEMA = pa.schema(
    {"document": pa.int64(), "split": pa.string(), "source": pa.string(), "part": pa.int32(), "text": pa.string()}
)
WORD_SCHEMA = pa.schema(
    # A document's number among those of validation text, and the bytes of its text from start to end (excluded).
    {"document": pa.int64(), "start": pa.int32(), "end": pa.int32(), "part_of_speech": pa.string()}
)

RECORDS = (".jsonl", ".ndjson", ".parquet", ".conllu")
PROSE = (".txt", ".text", ".md", ".rst", ".tex", ".org", ".html")
# fmt: off
CODE = (
    ".c", ".cc", ".cpp", ".cs", ".go", ".h", ".hpp", ".hs", ".java", ".jl", ".js", ".jsx", ".kt", ".lua", ".ml", ".php",
    ".pl", ".py", ".pyi", ".r", ".rb", ".rs", ".scala", ".sh", ".sql", ".swift", ".ts", ".tsx",
)
# fmt: on
IN_DIRECTORIES = frozenset(RECORDS + PROSE + CODE)

NOT_IN_STDLIB = frozenset({"test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages", "__pycache__"})


class Document(NamedTuple):
    """A row of the corpus: part number `part` of a document, in `split`, from the file named `source`."""

    document: int
    split: str
    source: str
    part: int
    text: str


def corpus_files(config: CorpusConfig) -> list[SourceFile]:
    """The files that the corpus is read from, each once, in a fixed order.

    Links are followed, except by `**`. Names start at the directory given, never at the root.
    Raises: UserError for an entry of `paths` that gives none.
    """
    found = _standard_library() if config.source else itertools.chain.from_iterable(map(_matches, config.paths))
    files: dict[str, SourceFile] = {}
    for path, name in found:
        # A name on disk may be any bytes; in a table it must be text.
        name = os.fsencode(name).decode(errors="replace")
        files.setdefault(os.path.realpath(path), SourceFile(path, name, path.stat().st_size))
    return list(files.values())


def corpus_fingerprint(config: CorpusConfig) -> dict[str, Any]:
    """What identifies the raw input: a digest of each file's name and bytes; Python's version for its library."""
    files = corpus_files(config)
    digest = hashlib.sha256()
    for file in files:
        try:
            with file.path.open("rb") as raw:
                content = hashlib.file_digest(raw, "sha256").hexdigest()
        except OSError as error:
            raise UserError(f"{file.name} must be readable, got: {reason(error)}.") from error
        digest.update(f"{content} {file.name}\n".encode())
    return {
        "source": _label(config),
        "python": platform.python_version() if config.source else None,
        "files": len(files),
        "bytes": sum(file.bytes for file in files),
        "sha256": digest.hexdigest(),
    }


def _label(config: CorpusConfig) -> str:
    return config.source or ", ".join(config.paths)


def text_split(digest: bytes, validation_fraction: float) -> str:
    """The split of the text with this sha256: the same text is never in both."""
    return "validation" if int.from_bytes(digest[:8]) < validation_fraction * 2**64 else "train"


def write_corpus(
    config: CorpusConfig, folder: Path, on_progress: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """Writes documents.parquet into `folder` and returns what it holds; parts of a long document count as documents.

    `empty` counts documents without text, `skipped` and `replaced` bad parts and records; `sha256` is that of the
    documents' digests in order. `on_progress` is given the fraction done. Of CoNLL-U files part_of_speech.parquet has
    the words of validation text, too.
    """
    files = corpus_files(config)
    # A standard library with a file in another encoding is still a corpus: that file is left out.
    policy = "skip" if config.source else config.on_bad_text
    reader = Reader(config.text_field, policy, config.document_bytes, config.max_expansion, config.max_bytes)
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
            reader.position = 0

    with pq.ParquetWriter(folder / DOCUMENTS, SCHEMA, compression="zstd", use_dictionary=["split", "source"]) as writer:
        for rows in byte_batches(documents(), GROUP_BYTES):
            writer.write_table(_table(rows, SCHEMA))
            if words:
                word_tables.append(_table(words, WORD_SCHEMA))
                words.clear()
            if on_progress:
                on_progress((done + reader.position) / total)
        _require_both_splits(config, counts, len(files))
        facts = {
            "source": _label(config),
            "files": len(files),
            "documents": counts["train_documents"] + counts["validation_documents"],
            "bytes": counts["train_bytes"] + counts["validation_bytes"],
            **{f"{split}_{unit}": counts[f"{split}_{unit}"] for split in SPLITS for unit in ("documents", "bytes")},
            "empty": reader.empty,
            "skipped": reader.skipped,
            "replaced": reader.replaced,
            "sha256": everything.hexdigest(),
        }
        writer.add_key_value_metadata({"corpus": json.dumps(facts)})
    if word_tables:
        pq.write_table(pa.concat_tables(word_tables), folder / PART_OF_SPEECH, compression="zstd")
    return facts


def _table(rows: Sequence[tuple], schema: pa.Schema) -> pa.Table:
    return pa.table(dict(zip(schema.names, zip(*rows, strict=True), strict=True)), schema)


def corpus_facts(folder: Path) -> dict[str, Any]:
    """What `write_corpus` returned when it wrote `folder`."""
    facts: dict[str, Any] = json.loads(pq.read_metadata(folder / DOCUMENTS).metadata[b"corpus"])
    return facts


def read_documents(folder: Path, split: str | None = None) -> Iterator[Document]:
    """The documents that `write_corpus` wrote, of one split or of both, a few megabytes at a time."""
    with pq.ParquetFile(folder / DOCUMENTS) as table:
        for group in range(table.num_row_groups):
            rows = table.read_row_group(group)
            if split is not None:
                rows = rows.filter(pc.equal(rows["split"], split))
            yield from map(Document._make, zip(*(column.to_pylist() for column in rows.columns), strict=True))


def byte_batches(sized: Iterable[tuple[T, int]], limit: int) -> Iterator[list[T]]:
    """The items, each given with its bytes, in lists that end when they reach `limit` bytes."""
    batch: list[T] = []
    held = 0
    for item, size in sized:
        batch.append(item)
        held += size
        if held >= limit:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _require_both_splits(config: CorpusConfig, counts: Counter[str], files: int) -> None:
    size = counts["train_bytes"] + counts["validation_bytes"]
    if not size:
        raise UserError(f"the corpus must hold text, got only empty or skipped documents in {files:,} files.")
    for split in SPLITS:
        if not counts[f"{split}_documents"]:
            documents = counts["train_documents"] + counts["validation_documents"]
            raise UserError(
                f"each split must hold a document, got none for {split} of {documents:,} ({size:,} bytes). Set "
                f"document_bytes = {max(256, min(size // 100, config.document_bytes // 4))} to cut long documents into "
                "more parts, or add text that differs."
            )


def _standard_library() -> Iterator[tuple[Path, str]]:
    root = Path(sysconfig.get_path("stdlib"))
    for path in _walk(root, NOT_IN_STDLIB):
        name = path.relative_to(root).as_posix()
        # These two hold the paths of the machine that built Python: without them a version is the same text everywhere.
        if path.suffix == ".py" and not name.startswith(("_sysconfigdata", "config-")):
            yield path, name


def _matches(pattern: str) -> Iterator[tuple[Path, str]]:
    """The files that one entry of `paths` stands for, with their names."""
    path = Path(os.path.abspath(os.path.expanduser(pattern)))
    top = path
    while not os.path.lexists(path) and any(magic in str(top) for magic in "*?["):
        top = top.parent
    try:
        named = [path] if top == path else sorted(_visible(top, path.relative_to(top)))
        files = [file for match in named for file in _files(match)]
        why = "it is no file, and no file in it has a known suffix"
        if not files:
            path.stat()
    except (OSError, ValueError) as error:
        files, why = [], reason(error)
    if not files:
        raise UserError(f"each of paths must give files to read, got {pattern!r}: {why}. Correct or remove it.")
    for file in files:
        yield file, file.relative_to(top.parent).as_posix()


def _visible(top: Path, pattern: Path) -> Iterator[Path]:
    for match in top.glob(str(pattern)):
        if not any(name.startswith(".") for name in match.relative_to(top).parts):
            yield match


def _files(path: Path) -> Iterator[Path]:
    """`path` itself when it is a file, or what can be read below it when it is a directory."""
    if os.path.isfile(path):
        yield path
    elif os.path.isdir(path):
        yield from (file for file in _walk(path) if format_suffix(file.name) in IN_DIRECTORIES)


def _walk(root: Path, ignored: frozenset[str] = frozenset()) -> Iterator[Path]:
    """The files below `root` without hidden and ignored names; a directory that links lead back to is entered once."""

    def refuse(error: OSError) -> None:
        raise error

    entered = set()
    for folder, folders, names in os.walk(root, onerror=refuse, followlinks=True):
        real = os.path.realpath(folder)
        seen = real in entered
        entered.add(real)
        folders[:] = [] if seen else sorted(name for name in folders if name not in ignored and name[0] != ".")
        for name in [] if seen else sorted(names):
            path = Path(folder, name)
            if name[0] != "." and path.is_file():
                yield path
