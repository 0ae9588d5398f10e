"""Hashes of files, remembered because a plan, a check and a run all ask for them."""

import hashlib
import os
import time
from pathlib import Path

JUST_NOW_SECONDS = 2.0
_hashed: dict[tuple[int, ...], str] = {}


def remembered_sha256(path: Path) -> str:
    """The hash of a file, remembered for as long as its inode, size and times stay the same.

    A file that changed a moment ago is hashed again each time: it could change once more within one tick of the clock.
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
