"""Reads records that aren't simply one per line: JSON values, and rows of tables."""

import codecs
import csv
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from headstream.tasks.text.source_files import BLOCK_BYTES

CELL_LENGTH = 32 << 20  # characters: limits what an unclosed quotation mark can swallow
_BETWEEN = re.compile(r"[\s,\[\]]*")


def json_values(stream: BinaryIO, longest: int) -> Iterator[Any]:
    """The items of arrays, and values outside arrays, as they are read; invalid UTF-8 becomes lone surrogates.

    Raises: ValueError for invalid or truncated JSON, or a value of more than `longest` characters; RecursionError for
    one nested too deeply.
    """
    decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
    scan = json.JSONDecoder().raw_decode
    text, place, depth, ended = "", 0, 0, False
    while True:
        between = _BETWEEN.match(text, place)
        assert between
        depth += between[0].count("[") - between[0].count("]")
        place = between.end()
        try:
            if place < len(text):
                value, end = scan(text, place)
                if end < len(text) or ended:  # otherwise it may be a number that continues
                    yield value
                    place = end
                    continue
        except json.JSONDecodeError as error:
            cut_off = error.msg.startswith("Unterminated string") or error.pos > len(text) - 16
            if ended or not cut_off:
                raise
        if ended:
            if depth:
                raise ValueError("the array does not end" if depth > 0 else "an array ends that did not begin")

            return
        if len(text) - place > longest:
            raise ValueError(f"a record must hold at most {longest:,} characters")
        raw = stream.read(max(BLOCK_BYTES, len(text) - place))
        ended = not raw
        text, place = text[place:] + decode(raw, final=ended), 0


def table_rows(lines: Iterable[str], delimiters: str) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """The rows of a table that aren't blank, each with the number of its last line; an error in place of a bad row.

    The delimiter is the one that occurs most often in the first line.
    """
    csv.field_size_limit(CELL_LENGTH)
    lines = iter(lines)
    first = next(lines, "").removeprefix("\ufeff")
    delimiter = max(delimiters, key=first.partition("\r")[0].count)
    rows = csv.reader(_pieces(itertools.chain([first], lines)), delimiter=delimiter, strict=True)
    while True:
        try:
            row: list[str] | csv.Error = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            row = error
        if row and row != [""]:
            yield rows.line_num, row


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    """The lines, cut where a carriage return alone ends one."""
    for line in lines:
        if "\r" in line[:-2]:
            yield from io.StringIO(line, newline="")
        else:
            yield line
