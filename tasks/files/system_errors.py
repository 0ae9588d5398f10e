"""Full disks and exhausted memory, recognised in the errors of whichever library met them."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headstream.tasks.errors import UserError, WorkError

_UNWRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CUT_SHORT = re.compile(r"\d+ requested and \d+ written")  # all that NumPy says
_NO_MEMORY = (os.strerror(errno.ENOMEM), "can't allocate memory", "out of memory", "std::bad_alloc")


def disk_is_full(error: BaseException) -> bool:
    """True if an error means that the disk is full, or that a quota or limit on it is reached."""
    code = error.errno if isinstance(error, OSError) else None
    said = str(error)
    return code in _FULL or any(os.strerror(full) in said for full in _FULL) or bool(_CUT_SHORT.fullmatch(said))


def memory_is_short(error: BaseException) -> bool:
    """True if an error means that the machine, its GPU or a limit has less memory than was asked for."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY)


@contextmanager
def disk_errors_explained(root: Path) -> Iterator[None]:
    """Turn the error of a full or read-only disk, from Python or any library, into a WorkError."""
    try:
        yield
    except (UserError, WorkError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())
        reason = f"{os.strerror(errno.ENOSPC)} ({said})" if _CUT_SHORT.fullmatch(said) else said
        if disk_is_full(error):
            raise WorkError(
                f"{root} has no room for another artifact: {reason}. "
                "Free disk space (`headstream gc` removes what no study needs) and run again."
            ) from error
        if isinstance(error, OSError) and error.errno in _UNWRITABLE and str(root) in str(error.filename):
            raise WorkError(
                f"{root} can't be read and written: {reason}. "
                "Correct its permissions, or mount it writable, and run again."
            ) from error
        raise
