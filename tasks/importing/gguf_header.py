"""The header of a GGUF file: its metadata and the places of its tensors; everything is checked before it is used.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import struct
from dataclasses import dataclass
from math import prod
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np

from headstream.tasks.errors import UserError

MAGIC, GGUF_VERSIONS = b"GGUF", (2, 3)
FLOAT32, STRING, ARRAY = 6, 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
MAX_AXES = 4
MAX_ENTRIES = 1 << 22  # of one list; the longest belong to vocabularies of a quarter of a million tokens


@dataclass(frozen=True)
class GgufTensor:
    """A tensor's shape, rows first, its coding, and its place in the file."""

    shape: tuple[int, ...]
    coding: int  # a `gguf.GGMLQuantizationType`
    start: int  # bytes from the beginning of the file


@dataclass(frozen=True)
class GgufHeader:
    """A file's metadata by key, and its tensors by name."""

    metadata: dict[str, Any]
    tensors: dict[str, GgufTensor]


def read_header(path: Path) -> GgufHeader:
    """Read the header of a GGUF file, not its tensors.

    Raises:
        UserError: it isn't a GGUF file, is cut short or damaged.
    """
    try:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            return _Reader(content).header()
    except (struct.error, ValueError, OverflowError) as error:  # an empty file can't be mapped
        raise UserError(f"{path} is not a whole GGUF file: {error}. Download it again.") from error


class _Reader:
    """Reads values in order; a length that the rest of the file can't hold is an error before it is used."""

    def __init__(self, content: mmap) -> None:
        self.content, self.place = content, 0

    def header(self) -> GgufHeader:
        magic = self.bytes(4)
        if magic != MAGIC:
            raise ValueError(f"it begins with {magic!r}")
        version = self.number("I")
        if version not in GGUF_VERSIONS:
            raise ValueError(f"it has version {version}, and only {' and '.join(map(str, GGUF_VERSIONS))} are known")
        n_tensors, n_entries = self.number("Q"), self.number("Q")
        metadata: dict[str, Any] = {}
        for _ in range(self.fitting(n_entries, 12)):
            key = self.text()
            if key in metadata:
                raise ValueError(f"it has two entries {key!r}")
            metadata[key] = self.value(self.number("I"))
        found = {}
        for _ in range(self.fitting(n_tensors, 24)):
            name = self.text()
            if name in found:
                raise ValueError(f"it has two tensors {name!r}")
            n_axes = self.number("I")
            if not 1 <= n_axes <= MAX_AXES:
                raise ValueError(f"its tensor {name!r} has {n_axes} axes")
            axes = self.numbers("Q", n_axes)
            found[name] = GgufTensor(tuple(reversed(axes)), self.number("I"), self.number("Q"))
            if prod(axes) >= 1 << 48:
                raise ValueError(f"its tensor {name!r} has shape {found[name].shape}")
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment not in {1 << power for power in range(3, 17)}:
            raise ValueError(f"its general.alignment is {alignment!r}")
        start = -(-self.place // alignment) * alignment
        return GgufHeader(metadata, {k: GgufTensor(t.shape, t.coding, start + t.start) for k, t in found.items()})

    def fitting(self, count: int, least_bytes: int) -> int:
        if count * least_bytes > len(self.content) - self.place:
            raise ValueError("it ends too soon")
        return count

    def bytes(self, count: int) -> bytes:
        self.place += self.fitting(count, 1)
        return self.content[self.place - count : self.place]

    def numbers(self, sign: str, count: int) -> tuple[Any, ...]:
        layout = struct.Struct(f"<{count}{sign}")
        return layout.unpack(self.bytes(layout.size))

    def number(self, sign: str) -> Any:
        return self.numbers(sign, 1)[0]

    def text(self) -> str:
        try:
            return self.bytes(self.number("Q")).decode()
        except UnicodeDecodeError:
            raise ValueError("it has text that isn't UTF-8") from None

    def value(self, kind: int) -> Any:
        if kind == FLOAT32:
            return float(str(np.float32(self.number("f"))))  # 1e-05, where its nearest neighbour is 9.9999997e-06
        if kind in SCALARS:
            return self.number(SCALARS[kind])
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            raise ValueError(f"it has an entry of the unknown kind {kind}")
        kind, count = self.number("I"), self.number("Q")
        if count > MAX_ENTRIES:
            raise ValueError(f"it has a list of {count:,} entries")
        if kind in SCALARS:
            return list(self.numbers(SCALARS[kind], count))
        if kind != STRING:
            raise ValueError(f"it has a list of entries of the kind {kind}")
        return [self.text() for _ in range(self.fitting(count, 8))]
