"""Values computed from files, remembered for as long as the files stay the same."""

import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from io import BufferedReader
from pathlib import Path
from threading import Lock
from typing import Any

from headstream.tasks import places
from headstream.tasks.files.whole_files import written_whole

JUST_NOW_SECONDS = 2.0  # within which a file could change once more in one tick of its clock


class RememberedFiles:
    """The results of one computation on files, by inode, size and times; kept on disk between processes.

    Files that have just changed aren't remembered. A memory on disk is ignored if it is damaged, or if the values were
    `computed_by` something else.
    """

    def __init__(self, kept_in: Path, computed_by: str) -> None:
        self._kept_in, self._computed_by = kept_in, computed_by
        self._has_news = False
        self._keeping = Lock()
        self._known: dict[str, list[Any]] = {}  # stamp and value, by path
        with suppress(OSError, ValueError):
            kept = json.loads(kept_in.read_bytes())
            if isinstance(kept, dict) and kept.get("computed_by") == computed_by:
                self._known = kept["files"]

    def recall(self, path: Path, compute: Callable[[BufferedReader], Any]) -> Any:
        """The JSON value that `compute` returns for a file; it is called only if the value isn't known.

        Raises:
            OSError: the file can't be read.
        """
        with path.open("rb") as raw:
            status = os.fstat(raw.fileno())
            stamp = [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
            known = self._known.get(str(path))
            if known and known[0] == stamp:
                return known[1]
            value = compute(raw)
            if abs(time.time() - max(status.st_mtime, status.st_ctime)) >= JUST_NOW_SECONDS:
                self._known[str(path)] = [stamp, value]
                self._has_news = True
            return value

    def keep(self) -> None:
        """Write new values to disk, and forget files that are gone; if that fails, the next process computes again."""
        if not self._has_news:
            return
        self._has_news = False
        known = {path: entry for path, entry in self._known.copy().items() if os.path.exists(path)}
        with self._keeping, suppress(OSError):
            self._kept_in.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(self._kept_in) as unfinished:
                kept = {"computed_by": self._computed_by, "files": known}
                unfinished.write_text(json.dumps(kept), encoding="utf-8")


def remembered_files(name: str, computed_by: str = "sha256") -> RememberedFiles:
    """The values remembered in HEADSTREAM_HOME under a name, shared by all callers in this process."""
    return _opened(places.remembered_folder() / f"{name}.json", computed_by)


@cache
def _opened(kept_in: Path, computed_by: str) -> RememberedFiles:
    return RememberedFiles(kept_in, computed_by)


def sha256_of(raw: BufferedReader) -> str:
    """A hash of an open file's content."""
    return hashlib.file_digest(raw, "sha256").hexdigest()
