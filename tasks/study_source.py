"""Finding and reading study files."""

import difflib
import tomllib
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import Any

from tasks import places
from tasks.errors import RequestError

MAX_BYTES = 1_000_000


def shipped_studies() -> list[str]:
    """Names of the studies that come with the code."""
    return sorted(path.stem for path in places.STUDIES.glob("*.toml"))


def read_study_file(name_or_path: str, *, shipped_only: bool = False) -> tuple[str, dict[str, Any]]:
    """What a study file holds, and the name to call it by in errors.

    Raises:
        RequestError: no such study, or a file that isn't TOML.
    """
    path = _find(name_or_path, shipped_only)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise RequestError(f"a study file must be under {MAX_BYTES:,} bytes, got {path}. Is it a study?")
        return path.name, tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f"a study file must be readable, got {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"a study file must be TOML, got {path.name}: {error}.") from None


def require_allowed(patterns: Iterable[str]) -> None:
    """Refuse paths, globs too, that lead outside of the folders that a deployed study may read.

    Raises:
        RequestError: names the path and the folders.
    """
    roots = [root.resolve() for root in places.corpus_roots()]
    for pattern in patterns:
        path = Path(pattern).expanduser()
        fixed = Path(*takewhile(lambda part: not set(part) & set("*?["), path.parts)).resolve()  # a glob begins after
        if ".." in path.parts or not any(fixed.is_relative_to(root) for root in roots):
            allowed = ", ".join(map(str, roots))
            raise RequestError(
                f"a study that is deployed must read files below {allowed}, got {pattern!r}. Move the files there, or"
                " set HEADSTREAM_CORPUS_ROOTS where the worker runs."
            )


def _find(name_or_path: str, shipped_only: bool) -> Path:
    shipped = places.STUDIES / f"{name_or_path}.toml"
    path = Path(name_or_path).expanduser()
    if "/" not in name_or_path and shipped.is_file():
        return shipped
    if path.is_file() and not shipped_only:
        return path
    names = shipped_studies()
    near = difflib.get_close_matches(name_or_path, names, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Studies that ship: {', '.join(names)}."
    raise RequestError(f"a study must be the name of one that ships or a file, got {name_or_path!r}. {hint}")
