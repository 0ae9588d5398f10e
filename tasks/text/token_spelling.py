"""The spelling of tokens, for any kind of tokenizer: in bytes, and in labels of which no two are equal."""

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from tokenizers import Tokenizer

# Byte-level BPE writes a byte as its own character if that is printable, and otherwise as one from U+0100 upwards.
_PRINTED = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_BYTES = {chr(byte): byte for byte in _PRINTED} | {
    chr(0x100 + index): byte for index, byte in enumerate(sorted(set(range(256)) - set(_PRINTED)))
}
SENTENCEPIECE_SPACE = "\u2581"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


def spelled_tokens(tokenizer: Tokenizer, vocabulary: int) -> list[bytes]:
    """The bytes of each id of a vocabulary; a name for special tokens, and for ids that no token has."""
    names, special = tokenizer.get_vocab(), {each.content for each in tokenizer.get_added_tokens_decoder().values()}
    spelled = [f"<unused {token}>".encode() for token in range(vocabulary)]
    byte_level = "ByteLevel" in str(tokenizer.decoder)  # alone, or in a sequence of decoders
    for name, token in names.items():
        if name in special:
            spelled[token] = name.encode()
        elif byte_level and all(sign in _BYTES for sign in name):
            spelled[token] = bytes(_BYTES[sign] for sign in name)
        elif byte := _BYTE_TOKEN.fullmatch(name):
            spelled[token] = bytes.fromhex(byte[1])
        else:
            spelled[token] = name.replace(SENTENCEPIECE_SPACE, " ").encode()
    return spelled


class Readable(NamedTuple):
    """How labels show white space, and signs that they escape, since something else is shown by them."""

    shown: Mapping[str, str]
    escaped: str


def distinct_labels(tokenizer: Tokenizer, spelled: list[bytes], readable: Readable) -> list[str]:
    """A label for each id of a vocabulary, given its bytes.

    Of several ids that spell the same, all but one have their id behind a space: of a byte and a character, the byte.
    """
    alike: dict[bytes, list[int]] = defaultdict(list)
    for token, raw in enumerate(spelled):
        alike[raw].append(token)
    labels = [label_of(raw, readable) for raw in spelled]
    for tokens in alike.values():
        first = min(tokens, key=lambda token: bool(_BYTE_TOKEN.fullmatch(tokenizer.id_to_token(token) or "")))
        for token in tokens:
            if token != first:
                labels[token] += f" #{token}"
    return labels


def label_of(spelled: bytes, readable: Readable) -> str:
    r"""Bytes as text from which they can be told: what doesn't print, or isn't UTF-8, is escaped.

    So is a backslash before what could be taken for the rest of an escape.

    >>> dots = Readable({" ": "·"}, "·")
    >>> [label_of(raw, dots) for raw in (b" def", "·".encode(), b"\n", b"\\n", b"\\", b"\xa0", "\xa0".encode())]
    ['·def', '\\u00b7', '\\n', '\\\\n', '\\', '\\xa0', '\\u00a0']
    """
    label = ""
    for sign in reversed(spelled.decode(errors="surrogateescape")):
        if sign == "\\":
            label = sign * (2 if label.startswith(_AFTER_BACKSLASH) else 1) + label
        else:
            label = _shown(sign, readable) + label
    return label


_AFTER_BACKSLASH = ("\\", "n", "r", "t", "x", "u", "U")  # what an escape goes on with


def _shown(sign: str, readable: Readable) -> str:
    if sign in readable.shown:
        return readable.shown[sign]
    if "\udc80" <= sign <= "\udcff":  # a byte that is no part of a character
        return f"\\x{ord(sign) - 0xDC00:02x}"
    if sign in readable.escaped or "\x80" <= sign <= "\xa0" or sign == "\xad":  # \xa0 would be a byte
        return f"\\u{ord(sign):04x}"
    return sign if sign.isprintable() else sign.encode("unicode_escape").decode()
