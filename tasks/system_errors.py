"""Telling a full disk and too little memory from other errors, whichever library met them."""

import errno
import os
import re

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CUT_SHORT = re.compile(r"\d+ requested and \d+ written")  # all that NumPy says
_NO_MEMORY = (os.strerror(errno.ENOMEM), "can't allocate memory", "out of memory", "std::bad_alloc")


def disk_is_full(error: BaseException) -> bool:
    """Whether no more could be written: for want of room, or because of a quota or a limit."""
    code = error.errno if isinstance(error, OSError) else None
    said = str(error)
    return code in _FULL or any(os.strerror(full) in said for full in _FULL) or bool(_CUT_SHORT.fullmatch(said))


def in_words(error: BaseException) -> str:
    """What an error says, on one line; for NumPy, which gives numbers alone, what they mean."""
    said = " ".join(str(error).split())
    return f"{os.strerror(errno.ENOSPC)} ({said})" if _CUT_SHORT.fullmatch(said) else said


def memory_is_short(error: BaseException) -> bool:
    """Whether memory was asked for that the machine, its GPU or a limit does not give."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY)
