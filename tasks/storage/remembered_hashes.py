"""Hashes of files that are asked for again and again: by a plan, by what is finished, by a run."""

import hashlib
import os
import time
from pathlib import Path

JUST_NOW_SECONDS = 2.0
_hashed: dict[tuple[int, ...], str] = {}


def remembered_sha256(path: Path) -> str:
    """The hash of a file, remembered for as long as its inode, size and times stay the same.

    One that has changed just now is hashed again each time: it could change once more within a tick of its clock.
    """
    with path.open("rb") as raw:
        status = os.fstat(raw.fileno())
        identity = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        if identity not in _hashed:
            content = hashlib.file_digest(raw, "sha256").hexdigest()
            if abs(time.time() - max(status.st_mtime, status.st_ctime)) < JUST_NOW_SECONDS:
                return content
            _hashed[identity] = content
    return _hashed[identity]
