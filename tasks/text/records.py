"""Reads JSON values that aren't simply one per line."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from headstream.tasks.files.json_objects import twice
from headstream.tasks.text.source_files import BLOCK_BYTES

_BETWEEN = re.compile(r"[\s,\[\]]*")
_LONE_BYTE = re.compile("[\udc80-\udcff]")


class SeveralValues:
    """Stands for the values of a name that an object has more than once, of which none is the right one."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else found | dict.fromkeys(twice(pairs), SeveralValues())


# Numbers are never read, and Python refuses to read those of thousands of digits: their lengths stand for them.
JSON = json.JSONDecoder(parse_int=len, object_pairs_hook=_object)


class JsonValue(NamedTuple):
    """A value, and True if its bytes were UTF-8; others are U+DC80 to U+DCFF in it."""

    value: Any
    is_utf8: bool


def json_values(stream: BinaryIO, longest: int) -> Iterator[JsonValue]:
    """The items of arrays, and values outside arrays, as they are read.

    Raises: ValueError for invalid or truncated JSON, or a value of more than `longest` characters; RecursionError for
    one nested too deeply.
    """
    decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
    text, place, depth, ended = "", 0, 0, False
    while True:
        between = _BETWEEN.match(text, place)
        assert between
        depth += between[0].count("[") - between[0].count("]")
        place = between.end()
        try:
            if place < len(text):
                value, end = JSON.raw_decode(text, place)
                if end < len(text) or ended:  # otherwise it may be a number that continues
                    yield JsonValue(value, not _LONE_BYTE.search(text, place, end))
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
