"""Finding and reading study files."""

import difflib
import tomllib
from pathlib import Path
from typing import Any

from tasks import places
from tasks.errors import RequestError

MAX_BYTES = 1_000_000


def shipped_studies() -> list[str]:
    """Names of the studies that come with the code."""
    return sorted(path.stem for path in places.STUDIES.glob("*.toml"))


def read_study_file(name_or_path: str) -> tuple[str, dict[str, Any]]:
    """What a study file holds, and the name to call it by in errors.

    Raises:
        RequestError: no such study, or a file that isn't TOML.
    """
    path = _find(name_or_path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise RequestError(f"a study file must be under {MAX_BYTES:,} bytes, got {path}. Is it a study?")
        return path.name, tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f"a study file must be readable, got {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"a study file must be TOML, got {path.name}: {error}.") from None


def _find(name_or_path: str) -> Path:
    shipped = places.STUDIES / f"{name_or_path}.toml"
    path = Path(name_or_path).expanduser()
    if "/" not in name_or_path and shipped.is_file():
        return shipped
    if path.is_file():
        return path
    names = shipped_studies()
    near = difflib.get_close_matches(name_or_path, names, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Studies that ship: {', '.join(names)}."
    raise RequestError(f"a study must be the name of one that ships or a file, got {name_or_path!r}. {hint}")
