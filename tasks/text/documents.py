"""Documents from files: text taken out of each format, cut into parts and repaired.

All of it streams: memory is bounded by the size of a part, and by a line of JSON or a page of Parquet.
"""

import itertools
import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import UserError
from tasks.text.conllu import Sentence, Word, sentences
from tasks.text.source_files import BLOCK_BYTES, BROKEN, Budget, SourceFile, format_suffix, open_decompressed, reason

LINE_BYTES = 256 << 20  # an array of records on a single line is refused before it fills memory


class Part(NamedTuple):
    """A piece of a document, whole when the document is short; `document` counts those that hold text."""

    document: int
    part: int
    text: str
    words: tuple[Word, ...]


def cut(blocks: Iterable[bytes], limit: int) -> Iterator[tuple[int, bytes]]:
    """The joined blocks in pieces of at most `limit` (> 4) bytes, each with its offset, cut at the last line end.

    A piece without a line end is cut between characters, but not between carriage return and line feed.
    """
    offset, rest = 0, b""
    for block in blocks:
        rest = rest + block if rest else block
        start = 0
        while len(rest) - start > limit:
            end = rest.rfind(b"\n", start, start + limit) + 1 or _character_end(rest, start + limit)
            yield offset + start, rest[start:end]
            start = end
        offset, rest = offset + start, rest[start:]
    if rest:
        yield offset, rest


def _character_end(raw: bytes, end: int) -> int:
    """The last place up to `end` where UTF-8 text may be cut; `end` when the bytes are not UTF-8."""
    for place in range(end, end - 4, -1):
        if raw[place] & 0xC0 != 0x80 and raw[place - 1 : place + 1] != b"\r\n":
            return place
    return end


@dataclass
class Reader:
    """Reads files into parts of documents, and counts what it repairs and leaves out."""

    text_field: str
    on_bad_text: Literal["refuse", "replace", "skip"]
    document_bytes: int
    budget: Budget
    documents: int = 0
    empty: int = 0
    skipped: int = 0
    replaced: int = 0
    words: deque[Word] = field(default_factory=deque)
    """Words of the current document that are read and not yet in a part."""

    def read(self, file: SourceFile) -> Iterator[Part]:
        """The parts of the file's documents, in order, without those that hold only white space.

        Raises: UserError naming the file and the place.
        """
        for place, blocks in self._documents(file):
            part, skipped = 0, self.skipped
            for offset, raw in cut(blocks, self.document_bytes):
                text = self._text(raw, place, offset)
                words = tuple(self._take_words(offset, offset + len(raw)))
                if text and not text.isspace():
                    yield Part(self.documents, part, text, words)
                    part += 1
            self.documents += part > 0
            self.empty += part == 0 and self.skipped == skipped

    def _documents(self, file: SourceFile) -> Iterator[tuple[str, Iterable[bytes]]]:
        """Each document: how messages name its place, and its bytes."""
        match format_suffix(file.name) if file.bytes else "":
            case ".jsonl" | ".ndjson":
                yield from self._json_lines(file)
            case ".parquet":
                yield from self._parquet(file)
            case ".conllu":
                reject = partial(self._bad_record, "a word must be a number, a tab and its form")
                found = sentences(self._lines(file), reject)
                for _, inside in itertools.groupby(found, key=attrgetter("document")):
                    yield file.name, self._sentence_blocks(inside)
            case _:
                with open_decompressed(file, self.budget) as stream:
                    yield file.name, iter(lambda: stream.read(BLOCK_BYTES), b"")

    def _text(self, raw: bytes, place: str, offset: int) -> str | None:
        """The bytes as text with Unix line ends and no BOM, or None where bad text is skipped."""
        try:
            text = raw.decode()
            bad = raw.find(b"\0")
        except UnicodeDecodeError as error:
            bad = raw.find(b"\0", 0, error.start)
            bad = error.start if bad < 0 else bad
        if bad >= 0:
            if self.on_bad_text == "refuse":
                raise UserError(
                    f"text must be UTF-8 without NUL bytes, got 0x{raw[bad]:02x} at byte {offset + bad:,} of {place}. "
                    'Convert it to UTF-8, or set on_bad_text = "replace" or "skip".'
                )
            if self.on_bad_text == "skip":
                self.skipped += 1
                return None
            self.replaced += 1
            text = raw.decode(errors="replace").replace("\0", "\ufffd")
        if offset == 0:
            text = text.removeprefix("\ufeff")
        return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text

    def _bad_record(self, must: str, got: str, place: str) -> None:
        if self.on_bad_text != "skip":
            raise UserError(f'{must}, got {got} in {place}. Correct it, or set on_bad_text = "skip".')
        self.skipped += 1

    def _lines(self, file: SourceFile) -> Iterator[tuple[str, str]]:
        """Each line that holds text, with its place."""
        offset = 0
        with open_decompressed(file, self.budget) as stream:
            for number in itertools.count(1):
                raw = stream.readline(LINE_BYTES + 1)
                if not raw:
                    return
                place = f"line {number:,} of {file.name}"
                if len(raw) > LINE_BYTES:
                    raise UserError(
                        f"a line must hold at most {LINE_BYTES:,} bytes, got more in {place}. Write a record a line."
                    )
                line = self._text(raw, file.name, offset)
                offset += len(raw)
                del raw  # a line may be large
                if line is not None:
                    yield place, line

    def _json_lines(self, file: SourceFile) -> Iterator[tuple[str, Iterable[bytes]]]:
        must = f"a line must be a JSON object with a string field {self.text_field!r} (text_field)"
        for place, line in self._lines(file):
            if line.isspace():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                self._bad_record(must, f"invalid JSON ({error})", place)
                continue
            text = record.get(self.text_field) if isinstance(record, dict) else None
            if isinstance(text, str):
                # JSON may hold a lone surrogate, which no text can: as bytes it is invalid UTF-8 like any other.
                yield f"the text in {place}", [text.encode(errors="surrogatepass")]
            elif isinstance(record, dict):
                kinds = ", ".join(f"{name}: {type(value).__name__}" for name, value in record.items())
                self._bad_record(must, f"{{{kinds:.200}}}", place)
            else:
                self._bad_record(must, f"a {type(record).__name__}", place)

    def _parquet(self, file: SourceFile) -> Iterator[tuple[str, Iterable[bytes]]]:
        try:
            with pq.ParquetFile(file.path, buffer_size=BLOCK_BYTES, pre_buffer=False) as table:
                fields = {field.name: field.type for field in table.schema_arrow}
            if not _is_string(fields.get(self.text_field)):
                kinds = ", ".join(f"{name}: {kind}" for name, kind in fields.items())
                raise UserError(
                    f"{file.name} must have a string column {self.text_field!r}, got {kinds}. Set text_field."
                )
            spend = self.budget.spender(file)
            for row, text in enumerate(self._parquet_texts(file), start=1):
                place = f"row {row:,} of {file.name}"
                if text is None:
                    self._bad_record("a text must not be null", "null", place)
                    continue
                spend(len(text))
                yield f"the text in {place}", [text]
        except BROKEN as error:
            raise UserError(f"{file.name} must be a whole Parquet file, got: {reason(error)}.") from error

    def _parquet_texts(self, file: SourceFile) -> Iterator[bytes | None]:
        with pq.ParquetFile(file.path, buffer_size=BLOCK_BYTES, pre_buffer=False) as table:
            for group in range(table.num_row_groups):
                size = table.metadata.row_group(group)
                # Few rows: a text stored once can stand in many of them, and each would be a copy in memory.
                rows = min(64, max(1, size.num_rows * 16 * BLOCK_BYTES // max(1, size.total_byte_size)))
                for batch in table.iter_batches(rows, row_groups=[group], columns=[self.text_field]):
                    texts = batch.column(0)
                    texts = texts.dictionary_decode() if isinstance(texts, pa.DictionaryArray) else texts
                    yield from texts.cast(pa.large_binary()).to_pylist()
                self.budget.position = file.bytes * (group + 1) // table.num_row_groups

    def _sentence_blocks(self, found: Iterable[Sentence]) -> Iterator[bytes]:
        """The bytes of a document's sentences; their words, by their place in the document, go to `words`."""
        self.words.clear()
        offset = 0
        for sentence in found:
            raw = sentence.text.encode()
            self.words.extend(Word(offset + start, offset + end, tag) for start, end, tag in sentence.words)
            offset += len(raw)
            yield raw

    def _take_words(self, start: int, end: int) -> Iterator[Word]:
        """Takes the words up to a place in the document, gives those after another, counted from there."""
        while self.words and self.words[0].end <= end:
            word = self.words.popleft()
            if word.start >= start:
                yield Word(word.start - start, word.end - start, word.part_of_speech)


def _is_string(kind: pa.DataType | None) -> bool:
    if kind is not None and pa.types.is_dictionary(kind):
        kind = kind.value_type
    return kind in (pa.string(), pa.large_string(), pa.string_view())
