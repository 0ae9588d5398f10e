"""Files that others find whole or not at all."""

import glob
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LEFT_AFTER_SECONDS = 86_400.0  # what is being written for so long was left by a process that was killed


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A name to write a file under, which takes the file's place at the end of the block; an error leaves neither.

    What a killed process left under such a name is removed a day later.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        with suppress(FileNotFoundError):  # another process has just finished it
            if time.time() - left.stat().st_mtime > LEFT_AFTER_SECONDS:
                left.unlink()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
