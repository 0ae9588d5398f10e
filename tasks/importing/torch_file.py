"""Files of torch.save: tensors, numbers and words, mapped into memory; whatever could run code is refused."""

import re
import zipfile
from pathlib import Path
from typing import Any

import torch

from headstream.tasks.errors import UserError
from headstream.tasks.importing.careful_reading import require_file

MOST_PICKLE_BYTES = 64 << 20  # what names and shapes the tensors, and how training went


def read_torch_file(path: Path) -> dict[str, Any]:
    """The dictionary in a file of torch.save.

    Raises:
        UserError: it is damaged, or holds more than tensors, numbers and words.
    """
    _require_plain_archive(require_file(path))
    try:
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # of many classes, by what the pickle asks for
        reason = _culprit(error)
        raise UserError(f"{path} must hold tensors, numbers and words alone, got {reason}. {_REMEDY}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} must hold a dictionary, got a {type(found).__name__}. {_REMEDY}")
    return found


_REMEDY = "Save again what is needed of it, such as torch.save({'model': model.state_dict(), 'model_args': ...}, path)."


def _require_plain_archive(path: Path) -> None:
    """Refuses what could swell when it is read: torch.save writes archives without compression."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UserError(f"{path} must be a whole file of torch.save, got: {error}. {_REMEDY}") from None
    swollen = sum(entry.file_size for entry in entries) > path.stat().st_size
    pickled = max((entry.file_size for entry in entries if entry.filename.endswith(".pkl")), default=0)
    if swollen or any(entry.compress_type != zipfile.ZIP_STORED for entry in entries) or pickled > MOST_PICKLE_BYTES:
        raise UserError(f"{path} must be a file as torch.save writes it, got one that swells when read. {_REMEDY}")


def _culprit(error: Exception) -> str:
    """What stands in the way, of the page that torch says about it."""
    said = " ".join(str(error).split())
    named = re.search(r"GLOBAL ([\w.]+)", said)
    return f"{named[1]}, which could run code" if named else f"something else: {said[:200] or type(error).__name__}"
