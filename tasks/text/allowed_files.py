"""Restricts the files that deployed studies may read, since anyone who reaches Prefect's API can send a study."""

import os
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.imported_model_config import ImportedModelConfig
from headstream.tasks.text.corpus_files import corpus_files
from headstream.tasks.text.folder_files import GLOB_CHARACTERS


def require_allowed(corpus: CorpusConfig) -> None:
    """Refuse paths, globs and links that lead outside the folders that a deployed study may read.

    Raises:
        UserError: names the path and the folders, or the entry of `paths` that gives no files.
    """
    for pattern in corpus.paths:
        path = Path(os.path.expanduser(pattern))
        if ".." in path.parts or not _is_allowed(_before_glob(path)):
            raise _not_allowed(pattern)
    for file in corpus_files(corpus) if corpus.paths else ():  # a file that is found may be a link
        if not _is_allowed(file.path):
            raise _not_allowed(file.name)


def require_allowed_models(models: Sequence[ImportedModelConfig]) -> None:
    """Refuse models and tokenizers outside the folders that a deployed study may read.

    Raises:
        UserError: names the path and the folders.
    """
    for model in models:
        given_paths = (model.path,) if isinstance(model.path, str) else model.path
        paths = () if model.package else given_paths
        for given in (*paths, *filter(None, [model.tokenizer])):
            fixed = _before_glob(Path(os.path.expanduser(given)))
            if ".." in fixed.parts or not _is_allowed(fixed):
                raise _not_allowed(given)


def _before_glob(path: Path) -> Path:
    """The part of a path before any pattern."""
    return Path(*takewhile(lambda part: not GLOB_CHARACTERS & set(part), path.parts))


def _is_allowed(path: Path) -> bool:
    real = os.path.realpath(path)
    return any(Path(real).is_relative_to(root.resolve()) for root in places.corpus_roots())


def _not_allowed(path: str) -> UserError:
    allowed = ", ".join(map(str, places.corpus_roots()))
    return UserError(
        f"a deployed study may only read files below {allowed}, got {path!r}. Move the files there, or set"
        " HEADSTREAM_CORPUS_ROOTS where the worker runs."
    )
