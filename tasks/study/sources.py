"""Where studies come from: files that ship, files of users, and what a deployed study may read."""

import difflib
import os
import tomllib
from itertools import takewhile
from pathlib import Path
from typing import Any

from tasks import places
from tasks.errors import UserError
from tasks.study.corpus_config import CorpusConfig
from tasks.text.corpus_files import corpus_files

MAX_BYTES = 64 << 10  # TOML takes quadratic time to read


def shipped_studies() -> list[str]:
    """Names of the studies that ship."""
    return sorted(path.stem for path in places.STUDIES.glob("*.toml"))


def read_study_file(name_or_path: str, *, shipped_only: bool = False) -> tuple[str, dict[str, Any]]:
    """The name that errors call a study file by, and its content.

    Raises:
        UserError: no such study, or a file that isn't TOML.
    """
    path = _find(name_or_path, shipped_only)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UserError(
                f"a study file must be at most {MAX_BYTES:,} bytes, got more in {path}. Give the path of a study."
            )
        return path.name, tomllib.loads(content.decode())
    except OSError as error:
        raise UserError(f"a study file must be readable, got {path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:  # not TOML, not text, too long a number, too deep
        raise UserError(f"a study file must be TOML, got {path.name}: {error}.") from None


def require_allowed(corpus: CorpusConfig) -> None:
    """Refuse paths, globs and links that lead outside the folders that a deployed study may read.

    Raises:
        UserError: names the path and the folders, or the entry of `paths` that gives no files.
    """
    for pattern in corpus.paths:
        path = Path(os.path.expanduser(pattern))
        fixed = Path(*takewhile(lambda part: not set(part) & set("*?["), path.parts))  # a glob begins after
        if ".." in path.parts or not _is_allowed(fixed):
            raise _not_allowed(pattern)
    for file in corpus_files(corpus) if corpus.paths else ():  # what is found may be a link
        if not _is_allowed(file.path):
            raise _not_allowed(file.name)


def _is_allowed(path: Path) -> bool:
    real = os.path.realpath(path)
    return any(Path(real).is_relative_to(root.resolve()) for root in places.corpus_roots())


def _not_allowed(path: str) -> UserError:
    allowed = ", ".join(map(str, places.corpus_roots()))
    return UserError(
        f"a deployed study must read files below {allowed}, got {path!r}. Move the files there, or set"
        " HEADSTREAM_CORPUS_ROOTS where the worker runs."
    )


def _find(name_or_path: str, shipped_only: bool) -> Path:
    names = shipped_studies()
    if name_or_path in names:
        return places.STUDIES / f"{name_or_path}.toml"
    path = Path(os.path.expanduser(name_or_path))
    if not shipped_only and os.path.isfile(path):
        return path
    near = difflib.get_close_matches(name_or_path, names, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Studies that ship: {', '.join(names)}."
    raise UserError(f"a study must be the name of one that ships or a file, got {name_or_path[:200]!r}. {hint}")
