"""Reads files from elsewhere with care: regular files of bounded size, with a one-line message for each problem."""

import json
import os
from pathlib import Path
from typing import Any

import psutil

from headstream.tasks.errors import UserError
from headstream.tasks.files.json_objects import RepeatedNameError, distinct

MAX_JSON_BYTES = 4 << 20  # of a config; even those of the largest models have only a few kB


def is_there(path: Path) -> bool:
    """True if a folder has an entry of that name, even a broken link."""
    return os.path.lexists(path)


def require_file(path: Path) -> Path:
    """Return a path if it is a regular file, links followed.

    Raises:
        UserError: there is none.
    """
    try:
        resolved = path.resolve(strict=True)
    except FileNotFoundError:
        raise UserError(f"there is no file {path}. Correct the path, or download the file.") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(f"can't open {path}: {error}. Correct the path.") from None
    if not resolved.is_file():
        raise UserError(f"{path} is not a regular file. Correct the path.")
    return path


def read_json(path: Path, most_bytes: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """The object in a JSON file of at most `most_bytes` bytes.

    Raises:
        UserError: it isn't a file, is larger, or doesn't hold a JSON object; or a name stands twice in some object.
    """
    size = require_file(path).stat().st_size
    if size > most_bytes:
        raise UserError(f"{path} has {size:,} bytes, more than the {most_bytes:,} allowed. Is it the right file?")
    try:
        found = json.loads(path.read_bytes(), object_pairs_hook=distinct)
    except RepeatedNameError as error:
        raise UserError(f"{path} must say each thing once: {error}. Remove the one that isn't meant.") from None
    except (ValueError, RecursionError, OSError) as error:
        raise UserError(f"{path} is not valid JSON: {error}. Download the file again.") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} holds data of type {type(found).__name__}, not a JSON object. Is it the right file?")
    return found


def require_memory(path: Path, n_parameters: int) -> None:
    """Refuse a model whose weights in float32 don't fit this machine's memory."""
    needed, there = 4 * n_parameters, psutil.virtual_memory().total
    if needed > there:
        raise UserError(
            f"{path} has {n_parameters:,} parameters, {needed / 1e9:,.1f} GB in float32, which don't fit this machine's"
            f" memory of {there / 1e9:,.1f} GB. Choose a smaller model, or a larger machine."
        )
