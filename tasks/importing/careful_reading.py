"""Files from elsewhere, read with care: regular files of bounded size, each mistake told in one line."""

import json
import os
from pathlib import Path
from typing import Any

import psutil

from headstream.tasks.errors import UserError

MOST_JSON_BYTES = 4 << 20  # of a config; those of the largest models have a few kB


def is_there(path: Path) -> bool:
    """Whether a folder has an entry of that name, be it a link to nothing."""
    return os.path.lexists(path)


def require_file(path: Path) -> Path:
    """The path of a regular file, links followed.

    Raises:
        UserError: there is none.
    """
    try:
        resolved = path.resolve(strict=True)
    except FileNotFoundError:
        raise UserError(f"{path} must be a file, got nothing there. Correct the path, or fetch the file.") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(f"{path} must be a file that can be opened, got: {error}. Correct the path.") from None
    if not resolved.is_file():
        raise UserError(f"{path} must be a regular file, got something else. Correct the path.")
    return path


def read_json(path: Path, most_bytes: int = MOST_JSON_BYTES) -> dict[str, Any]:
    """The object that a JSON file holds.

    Raises:
        UserError: it is no file, larger than that, or holds no JSON object.
    """
    if (size := require_file(path).stat().st_size) > most_bytes:
        raise UserError(
            f"{path} must hold at most {most_bytes:,} bytes, got {size:,}. Give the file that belongs here."
        )
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError, OSError) as error:
        raise UserError(f"{path} must be JSON, got: {error}. Fetch the file again.") from None
    if not isinstance(found, dict):
        raise UserError(
            f"{path} must hold a JSON object, got a {type(found).__name__}. Give the file that belongs here."
        )
    return found


def require_memory(path: Path, n_parameters: int) -> None:
    """Refuses a model whose weights in float32 don't fit this machine's memory."""
    needed, there = 4 * n_parameters, psutil.virtual_memory().total
    if needed > there:
        raise UserError(
            f"a model must fit this machine's memory of {there / 1e9:,.1f} GB, got {path} with {n_parameters:,}"
            f" parameters, {needed / 1e9:,.1f} GB in float32. Choose a smaller model, or a larger machine."
        )
