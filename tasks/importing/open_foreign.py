"""A model from elsewhere, in whichever format it is."""

import hashlib
from pathlib import Path

from tasks.errors import UserError
from tasks.importing.foreign_model import ForeignModel
from tasks.importing.huggingface_folder import CONFIG, open_huggingface
from tasks.storage.sealing import file_sha256

FORMATS = "a folder of Hugging Face's"


def open_foreign(path: Path) -> ForeignModel:
    """The model in a file or folder; its header is read and checked, its weights are not yet.

    Raises:
        UserError: there is no model, or one that Headstream can't hold.
    """
    path = path.expanduser()
    try:
        there = path.exists()
    except (OSError, ValueError) as error:
        raise UserError(
            f"a model must be a file or folder that can be opened, got: {error}. Correct the path."
        ) from None
    if not there:
        raise UserError(f"a model must be a file or folder, got {path}, where nothing is. Correct the path.")
    if (path / CONFIG).exists():
        return open_huggingface(path)
    raise UserError(f"a model must be {FORMATS}, got {path}. Give the folder or file that holds the weights.")


def content_hash(model: ForeignModel) -> str:
    """A hash of the bytes of all files that decide a model."""
    return hashlib.sha256(" ".join(file_sha256(path) for path in model.files).encode()).hexdigest()
