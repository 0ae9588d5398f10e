"""Arguments as people give them in Python."""

import os
from numbers import Integral

from headstream.tasks.errors import UserError


def text_of(value: str | os.PathLike[str], what: str) -> str:
    """An argument as text, which a path is as well.

    Raises:
        UserError: it is neither.
    """
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise UserError(f"{what} must be text, got {value!r:.100}. Write it in quotation marks.")
    return text


def whole_number(value: int, name: str, least: int = 0) -> int:
    """An argument that must be a whole number.

    Raises:
        UserError: it isn't, or is smaller than the least.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise UserError(f"{name} must be a whole number from {least} on, got {value!r:.100}. Give another.")
    return int(value)
