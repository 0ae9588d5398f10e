"""Files of torch.save: tensors, numbers and words, mapped into memory; anything that could run code is refused."""

import re
import zipfile
from pathlib import Path
from typing import Any

import torch

from headstream.tasks.errors import UserError
from headstream.tasks.importing.careful_reading import require_file

MAX_PICKLE_BYTES = 64 << 20  # of names, shapes and training settings


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
        raise UserError(f"{path} holds more than tensors, numbers and words: {reason}. {_REMEDY}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} holds data of type {type(found).__name__}, not a dictionary. {_REMEDY}")
    return found


_REMEDY = "Save what is needed again, such as torch.save({'model': model.state_dict(), 'model_args': ...}, path)."


def _require_plain_archive(path: Path) -> None:
    """Refuse archives that could expand when read: torch.save writes them without compression."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UserError(f"{path} is not a whole file of torch.save: {error}. {_REMEDY}") from None
    swollen = sum(entry.file_size for entry in entries) > path.stat().st_size
    pickled = max((entry.file_size for entry in entries if entry.filename.endswith(".pkl")), default=0)
    if swollen or any(entry.compress_type != zipfile.ZIP_STORED for entry in entries) or pickled > MAX_PICKLE_BYTES:
        raise UserError(f"{path} would expand when read, which files of torch.save don't. {_REMEDY}")


def _culprit(error: Exception) -> str:
    """The one thing in torch's page-long message that stands in the way."""
    said = " ".join(str(error).split())
    named = re.search(r"GLOBAL ([\w.]+)", said)
    return f"{named[1]}, which could run code" if named else f"something else: {said[:200] or type(error).__name__}"
