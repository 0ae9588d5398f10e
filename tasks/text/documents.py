"""Reads documents from files: extracts text from each format, cuts it into parts and repairs it.

Everything is streamed: memory is bounded by the size of a part, and of a JSON record, a table cell or a Parquet page.
"""

import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from headstream.tasks.errors import UserError
from headstream.tasks.files.non_text import HEAD_BYTES, detect_non_text
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.text.conllu import Sentence, Word, sentences
from headstream.tasks.text.file_formats import CODE_SUFFIXES, text_format
from headstream.tasks.text.records import JSON, JsonValue, SeveralValues, json_values
from headstream.tasks.text.source_files import (
    BLOCK_BYTES,
    BROKEN,
    Budget,
    SourceFile,
    format_suffix,
    open_decompressed,
    reason,
)
from headstream.tasks.text.table_rows import TableRow, column_names, fitting_delimiter, table_rows

CSV_DELIMITERS = ",;\t|"
# What no text may hold, where all surrogates are escapes (True), or some stand for bytes that aren't UTF-8 (False).
BAD_ESCAPE = {True: re.compile("[\0\ud800-\udfff]"), False: re.compile("[\0\ud800-\udc7f\udd00-\udfff]")}
LINE_BYTES = 256 << 20  # maximum of a line or a record, to bound memory


class DocumentPart(NamedTuple):
    """A piece of a document, the whole of a short one; `document` counts those that have text."""

    document: int
    part: int
    text: str
    words: tuple[Word, ...]


def cut(blocks: Iterable[bytes], limit: int) -> Iterator[tuple[int, bytes]]:
    """Cut the joined blocks into pieces of at most `limit` (> 4) bytes, at line ends; yields each with its offset.

    A piece without a line end is cut between characters, but never between carriage return and line feed.
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
    """The last place up to `end` where UTF-8 text may be cut; `end` if the bytes are not UTF-8."""
    for place in range(end, end - 4, -1):
        if raw[place] & 0xC0 != 0x80 and raw[place - 1 : place + 1] != b"\r\n":
            return place
    return end


@dataclass
class Reader:
    """Reads files into parts of documents, and counts what it repairs and leaves out."""

    rules: CorpusConfig
    budget: Budget
    documents: int = 0
    empty: int = 0
    skipped: int = 0
    replaced: int = 0
    last_skipped: str = ""
    """The problem with the last part or record that was skipped."""
    words: deque[Word] = field(default_factory=deque)
    """Words of the current document that were read and aren't in a part yet."""

    def read(self, file: SourceFile) -> Iterator[DocumentPart]:
        """The parts of the file's documents, in order, without those of only white space.

        Raises: UserError naming the file and the place.
        """
        for place, blocks in self._documents(file):
            part, skipped = 0, self.skipped
            for offset, raw in cut(blocks, self.rules.document_bytes):
                text = self._text(raw, place, offset)
                words = tuple(self._take_words(offset, offset + len(raw)))
                if text and not text.isspace():
                    yield DocumentPart(self.documents, part, text, words)
                    part += 1
            self.documents += part > 0
            self.empty += part == 0 and self.skipped == skipped

    def _documents(self, file: SourceFile) -> Iterator[tuple[str, Iterable[bytes]]]:
        """Each document: its place for messages, and its bytes."""
        suffix = format_suffix(file.name)
        if not file.bytes:
            yield file.name, ()
            return
        if suffix == ".parquet":
            yield from self._parquet(file)
            return
        with open_decompressed(file, self.budget) as stream:
            head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
            other = detect_non_text(head, markup=suffix not in CODE_SUFFIXES)
            if other:
                self._bad(f"{file.name} is {other.kind}, not UTF-8 text", other.remedy)
                return
            match text_format(suffix, head):
                case "json lines":
                    yield from self._json_lines(stream, file)
                case "json":
                    yield from self._json_values(stream, file)
                case "csv":
                    yield from self._table(stream, file)
                case "conllu":
                    reject = partial(self._bad_record, "a word's line must be a number, a tab and its form")
                    found = sentences(self._lines(stream, file), reject)
                    for _, inside in itertools.groupby(found, key=attrgetter("document")):
                        yield file.name, self._sentence_blocks(inside)
                case _:
                    yield file.name, iter(lambda: stream.read(BLOCK_BYTES), b"")

    def _text(self, raw: bytes, place: str, offset: int) -> str | None:
        """Decode bytes to text with Unix line ends and no BOM; None if bad text is skipped."""
        try:
            text = raw.decode()
            bad = raw.find(b"\0")
        except UnicodeDecodeError as error:
            bad = raw.find(b"\0", 0, error.start)
            bad = error.start if bad < 0 else bad
        if bad >= 0:
            if self.rules.on_bad_text == "refuse":
                problem = "not UTF-8. Convert the file to UTF-8 text" if raw[bad] else "a NUL byte. Remove it"
                raise UserError(
                    f"0x{raw[bad]:02x} at byte {offset + bad:,} of {place} is {problem}, or set on_bad_text ="
                    ' "replace" or "skip".'
                )
            if self.rules.on_bad_text == "skip":
                self.skipped += 1
                return None
            self.replaced += 1
            text = raw.decode(errors="replace").replace("\0", "\ufffd")
        if offset == 0:
            text = text.removeprefix("\ufeff")
        return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text

    def _without_bad_escapes(self, text: str, place: str, is_utf8: bool) -> str | None:
        """A text of JSON without escapes of NUL and of halves of surrogate pairs; None if bad text is skipped."""
        bad = BAD_ESCAPE[is_utf8]
        found = bad.search(text)
        if not found:
            return text
        if self.rules.on_bad_text == "refuse":
            problem = "half of a surrogate pair" if ord(found[0]) else "a NUL"
            raise UserError(
                f"the escape \\u{ord(found[0]):04x} at character {found.start():,} of {place} is {problem}. Remove it,"
                ' or set on_bad_text = "replace" or "skip".'
            )
        if self.rules.on_bad_text == "skip":
            self.skipped += 1
            return None
        self.replaced += 1
        return bad.sub("\ufffd", text)

    def _bad(self, mistake: str, remedy: str) -> None:
        if self.rules.on_bad_text != "skip":
            raise UserError(f'{mistake}. {remedy}, or set on_bad_text = "skip".')
        self.skipped += 1
        self.last_skipped = mistake

    def _bad_record(self, must: str, got: str, place: str, remedy: str = "Correct it") -> None:
        self._bad(f"{must}, got {got} in {place}", remedy)

    def _raw_lines(self, stream: BinaryIO, file: SourceFile) -> Iterator[tuple[int, int, bytes]]:
        """Each line with its number and offset."""
        offset = 0
        for number in itertools.count(1):
            raw = stream.readline(LINE_BYTES + 1)
            if not raw:
                return
            if len(raw) > LINE_BYTES:
                raise UserError(
                    f"line {number:,} of {file.name} has more than {LINE_BYTES:,} bytes. Write one record per line."
                )
            yield number, offset, raw
            offset += len(raw)

    def _lines(self, stream: BinaryIO, file: SourceFile) -> Iterator[tuple[str, str]]:
        """Each line that has text, with its place."""
        for number, offset, raw in self._raw_lines(stream, file):
            line = self._text(raw, file.name, offset)
            if line is not None:
                yield f"line {number:,} of {file.name}", line

    def _json_lines(self, stream: BinaryIO, file: SourceFile) -> Iterator[tuple[str, Iterable[bytes]]]:
        first = True
        for place, line in self._lines(stream, file):
            if not line.strip():
                continue
            try:
                record = JSON.decode(line)
            except (ValueError, RecursionError) as error:
                self._bad_record(self._must, f"invalid JSON ({error})", place)
                continue
            yield from self._record(JsonValue(record, is_utf8=True), place, first)
            first = False

    def _json_values(self, stream: BinaryIO, file: SourceFile) -> Iterator[tuple[str, Iterable[bytes]]]:
        records = json_values(stream, LINE_BYTES)
        for number in itertools.count(1):
            place = f"record {number:,} of {file.name}"
            try:
                record = next(records)
            except StopIteration:
                return
            except (ValueError, RecursionError) as error:
                self._bad_record(self._must, f"invalid JSON ({error})", place)
                return
            yield from self._record(record, place, number == 1)

    @property
    def _must(self) -> str:
        return f"a record must be a JSON object with a string field {self.rules.text_field!r} (text_field)"

    def _record(self, found: JsonValue, place: str, first: bool) -> Iterator[tuple[str, Iterable[bytes]]]:
        """The text of a JSON record, if it has any."""
        record = found.value
        if not isinstance(record, dict):
            self._bad_record(self._must, f"a value of type {type(record).__name__}", place)
        elif isinstance(record.get(self.rules.text_field), str):
            place = f"the text in {place}"
            text = self._without_bad_escapes(record[self.rules.text_field], place, found.is_utf8)
            if text is not None:
                yield place, [text.encode(errors="surrogateescape")]
        elif isinstance(record.get(self.rules.text_field), SeveralValues):
            self._bad_record(self._must, "one that has it more than once", place)
        else:
            kinds = {name: type(value).__name__ for name, value in record.items()}
            if first and self.rules.text_field not in record and self.rules.on_bad_text != "skip":
                strings = [name for name in record if kinds[name] == "str"]
                raise self._no_field(place, kinds, sorted(strings, key=lambda name: -len(record[name])))
            self._bad_record(self._must, f"{{{_listed(kinds)}}}", place)

    def _table(self, stream: BinaryIO, file: SourceFile) -> Iterator[tuple[str, Iterable[bytes]]]:
        """The texts of a table whose first row names its columns."""
        lines: Iterator[str] = (raw.decode(errors="surrogateescape") for _, _, raw in self._raw_lines(stream, file))
        is_tsv = format_suffix(file.name) == ".tsv"
        quoted = self.rules.quoting == "quotes" or (self.rules.quoting == "auto" and not is_tsv)
        delimiters = self.rules.delimiter or ("\t" if is_tsv else CSV_DELIMITERS)
        delimiter, lines = fitting_delimiter(lines, delimiters, self.rules.text_field, quoted=quoted)
        rows = table_rows(lines, delimiter, quoted=quoted)
        first = next(rows, None)
        if first is None:
            return
        column = self._column(first, delimiter, file)
        for row in rows:
            place = f"line {row.line:,} of {file.name}"
            if row.mistake:
                self._bad_record(row.mistake.must, row.mistake.got, place, row.mistake.remedy)
            else:
                yield f"the text in {place}", [row.cells[column].encode(errors="surrogateescape")]

    def _column(self, first: TableRow, delimiter: str, file: SourceFile) -> int:
        """The place of the text in the rows of a table.

        Raises:
            UserError: its first row is bad, or doesn't name the column once.
        """
        if first.mistake:
            must, got, remedy = first.mistake
            raise UserError(f"{must}, got {got} in the first row of {file.name}. {remedy}.")
        names = column_names(first)
        if self.rules.text_field not in names:
            other = f", or delimiter if it isn't {delimiter!r}" if len(names) == 1 else ""
            raise self._no_field(file.name, dict.fromkeys(names, "column"), names, other)
        if names.count(self.rules.text_field) > 1:
            raise self._several_columns(file)
        return names.index(self.rules.text_field)

    def _parquet(self, file: SourceFile) -> Iterator[tuple[str, Iterable[bytes]]]:
        try:
            with pq.ParquetFile(file.path, buffer_size=BLOCK_BYTES, pre_buffer=False) as table:
                schema = table.schema_arrow
            if schema.names.count(self.rules.text_field) > 1:
                raise self._several_columns(file)
            fields = {field.name: field.type for field in schema}
            if not _is_string(fields.get(self.rules.text_field)):
                strings = [name for name, kind in fields.items() if _is_string(kind)]
                raise self._no_field(file.name, fields, strings)
            spend = self.budget.spender(file)
            for row, text in enumerate(self._parquet_texts(file), start=1):
                place = f"row {row:,} of {file.name}"
                if text is None:
                    self._bad_record("a text must not be null", "null", place)
                    continue
                spend(len(text))
                yield f"the text in {place}", [text]
        except pa.ArrowNotImplementedError as error:
            raise UserError(f"{file.name} can't be read: {reason(error)}. Write it in another way.") from error
        except BROKEN as error:
            raise UserError(f"{file.name} is not a whole Parquet file: {reason(error)}.") from error

    def _parquet_texts(self, file: SourceFile) -> Iterator[bytes | None]:
        with pq.ParquetFile(file.path, buffer_size=BLOCK_BYTES, pre_buffer=False) as table:
            for group in range(table.num_row_groups):
                size = table.metadata.row_group(group)
                # Few rows at once: a text that is stored once can be in many rows, each a copy in memory.
                rows = min(64, max(1, size.num_rows * 16 * BLOCK_BYTES // max(1, size.total_byte_size)))
                for batch in table.iter_batches(rows, row_groups=[group], columns=[self.rules.text_field]):
                    texts = batch.column(self.rules.text_field)  # beside it may be a field of a struct: `a.b` is b of a
                    texts = texts.dictionary_decode() if isinstance(texts, pa.DictionaryArray) else texts
                    yield from texts.cast(pa.large_binary()).to_pylist()
                self.budget.position = file.bytes * (group + 1) // table.num_row_groups

    def _several_columns(self, file: SourceFile) -> UserError:
        return UserError(f"{file.name} has several columns {self.rules.text_field!r}. Rename all but one.")

    def _no_field(self, place: str, kinds: Mapping[str, Any], candidates: Sequence[str], other: str = "") -> UserError:
        """The error for a missing text field: lists the fields that are there, and suggests some."""
        best, *others = [*map(repr, candidates[:6])] or [""]
        remedy = f"Set text_field = {best}" if best else "Choose files with text in them"
        more = f" (or {', '.join(others)}){other}" if others else other
        return UserError(
            f"{place} has no string field {self.rules.text_field!r}, only {_listed(kinds)}. {remedy}{more}."
        )

    def _sentence_blocks(self, found: Iterable[Sentence]) -> Iterator[bytes]:
        """The bytes of a document's sentences; their words, with places in the document, are added to `words`."""
        self.words.clear()
        offset = 0
        for sentence in found:
            raw = sentence.text.encode()
            self.words.extend(Word(offset + start, offset + end, tag) for start, end, tag in sentence.words)
            offset += len(raw)
            yield raw

    def _take_words(self, start: int, end: int) -> Iterator[Word]:
        """Remove the words up to `end`, and yield those from `start` on, with places relative to it."""
        while self.words and self.words[0].end <= end:
            word = self.words.popleft()
            if word.start >= start:
                yield Word(word.start - start, word.end - start, word.part_of_speech)


def _listed(kinds: Mapping[str, Any]) -> str:
    return f"{', '.join(f'{name}: {kind}' for name, kind in kinds.items()) or 'no field':.200}"


def _is_string(kind: pa.DataType | None) -> bool:
    if kind is not None and pa.types.is_dictionary(kind):
        kind = kind.value_type
    return kind in (pa.string(), pa.large_string(), pa.string_view())
