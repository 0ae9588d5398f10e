"""Source files of a corpus: opened, decompressed, and kept from yielding more than they may."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from tasks.errors import UserError

BLOCK_BYTES = 1 << 20

COMPRESSIONS: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": lambda raw: pa.CompressedInputStream(raw, "zstd"),
}
BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException)


class SourceFile(NamedTuple):
    """A file to read: where it is, its name in messages and tables, and its size on disk."""

    path: Path
    name: str
    bytes: int


def format_suffix(name: str) -> str:
    """The suffix that decides the format, compression aside: `a.jsonl.gz` -> `.jsonl`."""
    path = Path(name.lower())
    return Path(path.stem).suffix if path.suffix in COMPRESSIONS else path.suffix


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
        try:
            count: int = self._inner.readinto(buffer)
        except BROKEN as error:
            raise UserError(f"{self._file.name} must be readable and whole, got: {reason(error)}.") from error
        self._budget.position = self._raw.tell()
        self._spend(count)
        return count

    def close(self) -> None:
        self._inner.close()
        self._raw.close()
        super().close()
