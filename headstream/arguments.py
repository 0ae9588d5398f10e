"""Arguments as people give them in Python."""

import os

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
