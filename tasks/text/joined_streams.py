"""Compressed streams joined end to end in one file, all of which are read or refused.

`BZ2File` and `LZMAFile` take damage at the beginning of a later stream, and zeros before it, for the end of the file.
"""

import io
import lzma
from collections.abc import Callable
from typing import Any, BinaryIO

READ_BYTES = 1 << 14  # at a time: what follows a stream is copied, and there may be many small streams


class JoinedStreams(io.RawIOBase):
    """The content of a file's streams; `padding` is the size that zeros between and after streams come in, 0 for none.

    Reading raises what the decompressor does, and EOFError for a file that ends within a stream.
    """

    def __init__(self, raw: BinaryIO, new_stream: Callable[[], Any], padding: int = 0) -> None:
        self._raw, self._new_stream, self._padding = raw, new_stream, padding
        self._stream = new_stream()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with at least one byte, unless the last stream has ended or the buffer has no room."""
        view = memoryview(buffer)
        content = b""
        while view and not content:
            if self._stream.eof:
                packed = self._next_stream()
                if not packed:
                    break
                self._stream = self._new_stream()
            else:
                packed = self._more() if self._stream.needs_input else b""
            content = self._stream.decompress(packed, len(view))
        view[: len(content)] = content
        return len(content)

    def _more(self) -> bytes:
        packed = self._raw.read(READ_BYTES)
        if not packed:
            raise EOFError("it ends within compressed data")
        return packed

    def _next_stream(self) -> bytes:
        """The first bytes of the stream after the one that has ended, if there is one."""
        packed = self._stream.unused_data or self._raw.read(READ_BYTES)
        zeros = 0
        while self._padding and packed:
            stream = packed.lstrip(b"\0")
            zeros += len(packed) - len(stream)
            if stream:
                packed = stream
                break
            packed = self._raw.read(READ_BYTES)
        if self._padding and zeros % self._padding:
            raise lzma.LZMAError(f"zeros after a stream must come in multiples of {self._padding}, got {zeros:,}")
        return packed
