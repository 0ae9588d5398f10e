"""Text as a terminal shows it: on lines that end between words, and without what would steer it."""

import shutil
import textwrap
from typing import TextIO


def terminal_safe(text: str) -> str:
    r"""Text with its invisible characters (control codes, reordering marks) spelled out, like `\x00`."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def wrapped_for(output: TextIO, line: str) -> str:
    """A line as it is, or broken between words where it is shown on a terminal; paths and commands stay whole."""
    if not output.isatty():
        return line
    indent = "  " if line.startswith("- ") else ""
    width = max(20, shutil.get_terminal_size().columns)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
