"""Source files of a corpus: opened, decompressed, and kept from yielding more than they may."""

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

BLOCK_BYTES = 1 << 20
ZSTD_WINDOW_LOG = 31  # a window of 2 GiB of memory, as `zstd --long=31` asks for: the most that zstd itself writes

COMPRESSIONS: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": lambda raw: zstd.ZstdFile(raw, options={zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG}),
}
BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError, pa.ArrowException)


class SourceFile(NamedTuple):
    """A file to read: where it is, its name in messages and tables, and its size on disk."""

    path: Path
    name: str
    bytes: int


def format_suffix(name: str) -> str:
    """The suffix that decides the format, compression aside: `a.jsonl.gz` -> `.jsonl`."""
    stem, suffix = os.path.splitext(name.lower())
    return os.path.splitext(stem)[1] if suffix in COMPRESSIONS else suffix


class Budget:
    """What a corpus may hold once decompressed, and how much of it was read: guards memory and disk against bombs."""

    def __init__(self, max_expansion: float, max_bytes: int) -> None:
        self.max_expansion, self.max_bytes = max_expansion, max_bytes
        self.bytes_read = 0
        self.position = 0  # bytes consumed of the current file, for progress

    def spender(self, file: SourceFile) -> Callable[[int], None]:
        """A function that books bytes read from a file.

        Raises:
            UserError: it raises one when the file expands too far, or the corpus is too large.
        """
        got = 0

        def spend(count: int) -> None:
            nonlocal got
            got += count
            self.bytes_read += count
            if got > max(BLOCK_BYTES, self.max_expansion * file.bytes):
                raise UserError(
                    f"{file.name} must expand to at most {self.max_expansion:g} times its {file.bytes:,} bytes, got "
                    "more. Raise max_expansion if the file is what you expect."
                )
            if self.bytes_read > self.max_bytes:
                raise UserError(
                    f"a corpus must hold at most {self.max_bytes:,} bytes, got more by {file.name}. Raise max_bytes."
                )

        return spend


def open_decompressed(file: SourceFile, budget: Budget) -> io.BufferedReader:
    """A file's decompressed bytes, within a budget.

    Raises:
        UserError: the file can't be read; reading on raises one where it is damaged or too large.
    """
    try:
        raw = file.path.open("rb")
    except OSError as error:
        raise UserError(f"{file.name} must be readable, got: {reason(error)}.") from error
    return io.BufferedReader(_Decompressed(raw, file, budget), BLOCK_BYTES)


def reason(error: BaseException) -> str:
    """The first line of what went wrong, for a one-line message."""
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0].rstrip(".")


class _Decompressed(io.RawIOBase):
    """A file's decompressed bytes, booked as they are read."""

    def __init__(self, raw: BinaryIO, file: SourceFile, budget: Budget) -> None:
        self._raw, self._file, self._budget = raw, file, budget
        self._inner = COMPRESSIONS.get(file.path.suffix.lower(), lambda stream: stream)(raw)
        self._spend = budget.spender(file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer as far as the file goes: the first one has its first bytes, however it was packed."""
        view, count = memoryview(buffer), 0
        try:
            while more := self._inner.readinto(view[count:]):
                count += more
        except BROKEN as error:
            if "too much memory" in str(error):
                raise UserError(
                    f"{self._file.name} must need a window of at most {2**ZSTD_WINDOW_LOG >> 30} GiB of memory, got a"
                    f" larger one. Compress it with `zstd --long={ZSTD_WINDOW_LOG}` or less."
                ) from error
            raise UserError(f"{self._file.name} must be readable and whole, got: {reason(error)}.") from error
        self._budget.position = self._raw.tell()
        self._spend(count)
        return count

    def close(self) -> None:
        self._inner.close()
        self._raw.close()
        super().close()
