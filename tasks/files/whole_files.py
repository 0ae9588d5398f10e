"""Files that other processes see complete or not at all."""

import glob
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ABANDONED_AFTER_SECONDS = 86_400.0  # the age at which an unfinished file counts as left by a killed process


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` at the end of the block; an error leaves `path` as it was.

    Temporary files of killed processes are removed a day later.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        with suppress(FileNotFoundError):  # another process has just finished it
            if time.time() - left.stat().st_mtime > ABANDONED_AFTER_SECONDS:
                left.unlink()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
