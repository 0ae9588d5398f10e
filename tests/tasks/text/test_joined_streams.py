"""Compressed files of several streams: all of them are read, or the file is refused, as the command-line tools do."""

import bz2
import gzip
import io
import lzma
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
from backports import zstd

from headstream.tasks.errors import UserError
from headstream.tasks.text.joined_streams import JoinedStreams
from headstream.tasks.text.source_files import Budget, SourceFile, open_decompressed

CODECS = {
    ".gz": (gzip.compress, "gzip"),
    ".bz2": (bz2.compress, "bzip2"),
    ".xz": (lzma.compress, "xz"),
    ".zst": (partial(zstd.compress, options={zstd.CompressionParameter.checksum_flag: 1}), "zstd"),
}
ONE, TWO = b"one\n" * 50, b"two\n" * 50


def read(path: Path, content: bytes) -> bytes | None:
    """What is read of a file with this content; None if it is refused."""
    path.write_bytes(content)
    with open_decompressed(SourceFile(path, path.name, len(content)), Budget(1e6, 1 << 30)) as stream:
        try:
            return stream.read()
        except UserError:
            return None


@pytest.fixture(params=CODECS)
def suffix(request) -> str:
    return request.param


@pytest.fixture
def packed(suffix) -> tuple[bytes, bytes, bytes]:
    pack, _ = CODECS[suffix]
    return pack(ONE), pack(TWO), pack(b"")


CASES = {
    "two streams": lambda one, two, _: one + two,
    "an empty stream first": lambda one, two, empty: empty + one + two,
    "an empty stream between": lambda one, two, empty: one + empty + two,
    "an empty stream behind": lambda one, two, empty: one + two + empty,
    "nothing but an empty stream": lambda one, two, empty: empty,
    "four zeros between": lambda one, two, _: one + bytes(4) + two,
    "many zeros between": lambda one, two, _: one + bytes(40_000) + two,
    "three zeros between": lambda one, two, _: one + bytes(3) + two,
    "zeros behind": lambda one, two, _: one + two + bytes(8),
    "an odd number of zeros behind": lambda one, two, _: one + two + bytes(5),
    "zeros first": lambda one, two, _: bytes(4) + one,
    "garbage behind": lambda one, two, _: one + two + b"garbage",
    "the second cut in its header": lambda one, two, _: one + two[:3],
    "the second cut in its middle": lambda one, two, _: one + two[: len(two) // 2],
    "the second without its last byte": lambda one, two, _: one + two[:-1],
    "the first cut": lambda one, two, _: one[:-1] + two,
}


@pytest.mark.parametrize("case", CASES)
def test_what_the_tool_reads_is_read_and_what_it_complains_of_is_not_read_in_part(tmp_path, suffix, packed, case):
    _, tool = CODECS[suffix]
    if not shutil.which(tool):
        pytest.skip(f"{tool} isn't installed")
    path = tmp_path / f"a.txt{suffix}"
    found = read(path, CASES[case](*packed))
    done = subprocess.run([tool, "-dc", str(path)], capture_output=True)
    if done.returncode or done.stderr:
        whole = "zeros" in case and suffix == ".gz"  # gzip stops there with a warning: Python's reads on
        assert found in ([None, ONE + TWO] if whole else [None])
    else:
        assert found == done.stdout


def test_damage_anywhere_in_any_of_three_streams_loses_nothing_in_silence(tmp_path, suffix, packed):
    one, two, _ = packed
    whole = one + two + one
    refused = 0
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        found = read(tmp_path / f"a.txt{suffix}", bytes(damaged))
        assert found in (None, ONE + TWO + ONE)  # in gzip's header, some bytes say nothing of the content
        refused += found is None
    assert refused > 0.7 * len(whole)


def test_many_small_streams_and_small_buffers():
    pieces = [f"{number}\n".encode() for number in range(600)]
    stream = JoinedStreams(io.BytesIO(b"".join(map(lzma.compress, pieces))), lzma.LZMADecompressor, 4)
    assert io.BufferedReader(stream, 7).read() == b"".join(pieces)
    assert stream.readinto(bytearray(0)) == 0
