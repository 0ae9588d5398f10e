"""Opens and decompresses source files of a corpus, within a budget."""

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
from backports import zstd

from headstream.tasks.errors import UserError
from headstream.tasks.text.joined_streams import JoinedStreams

BLOCK_BYTES = 1 << 20
XZ_PADDING = 4  # the bytes that zeros between streams come in, by the format
ZSTD_WINDOW_LOG = 31  # a window of 2 GiB of memory, as of `zstd --long=31`, the largest that zstd itself writes

COMPRESSIONS: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": lambda raw: JoinedStreams(raw, bz2.BZ2Decompressor),
    ".xz": lambda raw: JoinedStreams(raw, lzma.LZMADecompressor, XZ_PADDING),
    ".zst": lambda raw: zstd.ZstdFile(raw, options={zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG}),
}
BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError, pa.ArrowException)


class SourceFile(NamedTuple):
    """A file to read: its path, its name in messages and tables, and its size on disk."""

    path: Path
    name: str
    bytes: int


def format_suffix(name: str) -> str:
    """The suffix that decides the format, compression aside: `a.jsonl.gz` -> `.jsonl`."""
    stem, suffix = os.path.splitext(name.lower())
    return os.path.splitext(stem)[1] if suffix in COMPRESSIONS else suffix


class Budget:
    """The maximum size of a decompressed corpus, and the bytes read so far: a guard against decompression bombs."""

    def __init__(self, max_expansion: float, max_bytes: int) -> None:
        self.max_expansion, self.max_bytes = max_expansion, max_bytes
        self.bytes_read = 0
        self.position = 0  # bytes consumed of the current file, for progress

    def spender(self, file: SourceFile) -> Callable[[int], None]:
        """Returns a function that records bytes read from a file.

        Raises:
            UserError: raised by that function when the file expands too far, or the corpus is too large.
        """
        got = 0

        def spend(count: int) -> None:
            nonlocal got
            got += count
            self.bytes_read += count
            if got > max(BLOCK_BYTES, self.max_expansion * file.bytes):
                raise UserError(
                    f"{file.name} expands to more than {self.max_expansion:g} times its {file.bytes:,} bytes. Raise"
                    " max_expansion if you trust the file."
                )
            if self.bytes_read > self.max_bytes:
                raise UserError(
                    f"with {file.name} the corpus exceeds max_bytes = {self.max_bytes:,}. Raise it, or read less."
                )

        return spend


def open_decompressed(file: SourceFile, budget: Budget) -> io.BufferedReader:
    """Open a file for reading its decompressed bytes, within a budget.

    Raises:
        UserError: the file can't be opened; reading raises one if it is damaged or too large.
    """
    try:
        raw = file.path.open("rb")
    except OSError as error:
        raise UserError(f"can't read {file.name}: {reason(error)}.") from error
    return io.BufferedReader(_Decompressed(raw, file, budget), BLOCK_BYTES)


def reason(error: BaseException) -> str:
    """The first line of an error's text, for a one-line message."""
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0].rstrip(".")


class _Decompressed(io.RawIOBase):
    """A file's decompressed bytes, recorded in the budget as they are read."""

    def __init__(self, raw: BinaryIO, file: SourceFile, budget: Budget) -> None:
        self._raw, self._file, self._budget = raw, file, budget
        self._inner = COMPRESSIONS.get(file.path.suffix.lower(), lambda stream: stream)(raw)
        self._spend = budget.spender(file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the file goes, so that the first read has its first bytes, however it is packed."""
        view, count = memoryview(buffer), 0
        try:
            while more := self._inner.readinto(view[count:]):
                count += more
        except BROKEN as error:
            if "too much memory" in str(error):
                raise UserError(
                    f"{self._file.name} needs a window of more than {2**ZSTD_WINDOW_LOG >> 30} GiB of memory. Compress"
                    f" it with `zstd --long={ZSTD_WINDOW_LOG}` or less."
                ) from error
            raise UserError(
                f"{self._file.name} is damaged or can't be read: {reason(error)}. Fetch or compress it anew."
            ) from error
        self._budget.position = self._raw.tell()
        self._spend(count)
        return count

    def close(self) -> None:
        self._inner.close()
        self._raw.close()
        super().close()
