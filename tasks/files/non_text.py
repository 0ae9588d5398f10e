"""Recognises files that hold something other than UTF-8 text, by their first bytes."""

import re
from typing import NamedTuple

HEAD_BYTES = 1 << 12
BOM = b"\xef\xbb\xbf"


class NonText(NamedTuple):
    """Content other than UTF-8 text, and how to get at any text in it."""

    kind: str
    remedy: str = "Leave it out"


_CONVERTED = "Take its text out, for example with `pandoc -t plain`"
_BINARY = {
    rb"%PDF-": NonText("a PDF", "Take its text out, for example with `pdftotext`"),
    rb"PK\x03\x04": NonText("a ZIP archive, as .docx and .epub are", f"Unpack it, or {_CONVERTED.lower()}"),
    rb"\xd0\xcf\x11\xe0": NonText("an Office document", "Save it as text"),
    rb"PAR1\x15": NonText("Parquet", "Give it the suffix .parquet"),
    rb"\x1f\x8b\x08|BZh\d1AY&SY|\xfd7zXZ\x00|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18": NonText(
        "compressed data", "Decompress it, or give it the suffix .gz, .bz2, .xz or .zst that it lacks"
    ),
    rb"7z\xbc\xaf|Rar!\x1a|.{257}ustar": NonText("an archive", "Unpack it"),
    rb"\x89PNG|\xff\xd8\xff|GIF8[79]a": NonText("an image"),
    rb"\x7fELF|MZ.{0,64}\x00|\xca\xfe\xba\xbe|\xcf\xfa\xed\xfe": NonText("an executable"),
}
_MARKUP = {
    rb"(?i:(?>\s|<\?xml.*?\?>|<!--.*?-->)*+<(?:!doctype\s+html|html[\s>]))": NonText("HTML", _CONVERTED),
    rb"\s*<\?xml\s": NonText("XML", "Take its text out"),
    rb"\{\\rtf": NonText("RTF", _CONVERTED),
    rb"%!PS": NonText("PostScript", "Take its text out, for example with `ps2ascii`"),
}
_BEGINNINGS = [
    (re.compile(b"(?:%b)?(?:%b)" % (BOM, pattern), re.DOTALL), found, pattern in _MARKUP)
    for pattern, found in (_BINARY | _MARKUP).items()
]
_CONTROLS = bytes({*range(32)} - {*b"\b\t\n\v\f\r\x1b"})


def detect_non_text(head: bytes, *, markup: bool = False) -> NonText | None:
    """Recognise content by a file's first bytes; None for UTF-8 text. With `markup`, HTML and the like count too."""
    encoding = _wide_encoding(head)
    if encoding:
        return NonText(encoding, f"Convert it with `iconv -f {encoding} -t UTF-8`")
    for beginning, found, is_markup in _BEGINNINGS:
        if (markup or not is_markup) and beginning.match(head):
            return found
    n_controls = len(head) - len(head.translate(None, _CONTROLS))
    return NonText("binary data") if 20 * n_controls > max(len(head), 160) else None


def _wide_encoding(head: bytes) -> str | None:
    """UTF-16 or UTF-32, known by its byte order mark, or UTF-16 by the NULs in half of the bytes of Latin letters."""
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "UTF-32"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    if b"\0" not in head:
        return None
    for encoding, low, high in (("UTF-16LE", head[::2], head[1::2]), ("UTF-16BE", head[1::2], head[::2])):
        if len(head) >= 16 and high.count(0) > 0.8 * len(high) and not low.count(0):
            return encoding
    return None
