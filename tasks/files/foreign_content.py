"""What a file holds instead of text in UTF-8, told by its first bytes."""

import re
from typing import NamedTuple

HEAD_BYTES = 1 << 12
BOM = b"\xef\xbb\xbf"


class Foreign(NamedTuple):
    """What a file holds that is no text in UTF-8, and how to come by the text in it, if there is any."""

    kind: str
    remedy: str = "Leave it out"


_CONVERTED = "Take its text out, for example with `pandoc -t plain`"
_BINARY = {
    rb"%PDF-": Foreign("a PDF", "Take its text out, for example with `pdftotext`"),
    rb"PK\x03\x04": Foreign("a ZIP archive, as .docx and .epub are", f"Unpack it, or {_CONVERTED.lower()}"),
    rb"\xd0\xcf\x11\xe0": Foreign("an Office document", "Save it as text"),
    rb"PAR1\x15": Foreign("Parquet", "Give it the suffix .parquet"),
    rb"\x1f\x8b\x08|BZh\d1AY&SY|\xfd7zXZ\x00|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18": Foreign(
        "compressed data", "Decompress it, or give it the suffix .gz, .bz2, .xz or .zst that it lacks"
    ),
    rb"7z\xbc\xaf|Rar!\x1a|.{257}ustar": Foreign("an archive", "Unpack it"),
    rb"\x89PNG|\xff\xd8\xff|GIF8[79]a": Foreign("an image"),
    rb"\x7fELF|MZ.{0,64}\x00|\xca\xfe\xba\xbe|\xcf\xfa\xed\xfe": Foreign("an executable"),
}
_MARKUP = {
    rb"(?i:(?>\s|<\?xml.*?\?>|<!--.*?-->)*+<(?:!doctype\s+html|html[\s>]))": Foreign("HTML", _CONVERTED),
    rb"\s*<\?xml\s": Foreign("XML", "Take its text out"),
    rb"\{\\rtf": Foreign("RTF", _CONVERTED),
    rb"%!PS": Foreign("PostScript", "Take its text out, for example with `ps2ascii`"),
}
_BEGINNINGS = [
    (re.compile(b"(?:%b)?(?:%b)" % (BOM, pattern), re.DOTALL), found, pattern in _MARKUP)
    for pattern, found in (_BINARY | _MARKUP).items()
]
_CONTROLS = bytes({*range(32)} - {*b"\b\t\n\v\f\r\x1b"})


def foreign(head: bytes, *, markup: bool = False) -> Foreign | None:
    """What a file with these first bytes holds instead of text in UTF-8; `markup`: HTML and its like count, too."""
    if encoding := _wide_encoding(head):
        return Foreign(encoding, f"Convert it with `iconv -f {encoding} -t UTF-8`")
    for beginning, found, is_markup in _BEGINNINGS:
        if (markup or not is_markup) and beginning.match(head):
            return found
    n_controls = len(head) - len(head.translate(None, _CONTROLS))
    return Foreign("binary data") if 20 * n_controls > max(len(head), 160) else None


def _wide_encoding(head: bytes) -> str | None:
    """UTF-16 or UTF-32 by its byte order mark, or UTF-16 by the NUL that is in half of the bytes of Latin letters."""
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
