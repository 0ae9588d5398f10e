"""Errors of the system behind those of libraries: a full disk, too little memory."""

import errno
import os
import re

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CUT_SHORT = re.compile(r"\d+ requested and \d+ written")  # all that NumPy says
_NO_MEMORY = (os.strerror(errno.ENOMEM), "can't allocate memory", "out of memory", "std::bad_alloc")


def disk_is_full(error: BaseException) -> bool:
    """Whether an error means that the disk is full, or a quota or limit on it is reached."""
    code = error.errno if isinstance(error, OSError) else None
    said = str(error)
    return code in _FULL or any(os.strerror(full) in said for full in _FULL) or bool(_CUT_SHORT.fullmatch(said))


def describe_error(error: BaseException) -> str:
    """What an error says, on one line; where NumPy gives only numbers, what they mean."""
    said = " ".join(str(error).split())
    return f"{os.strerror(errno.ENOSPC)} ({said})" if _CUT_SHORT.fullmatch(said) else said


def memory_is_short(error: BaseException) -> bool:
    """Whether an error means that more memory was asked for than the machine, its GPU or a limit gives."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY)
