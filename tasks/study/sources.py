"""Where studies come from: files that ship, and files of users."""

import difflib
import os
import tomllib
from pathlib import Path
from typing import Any

from tasks import places
from tasks.errors import UserError
from tasks.foreign_content import HEAD_BYTES, foreign

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
        if found := foreign(content[:HEAD_BYTES]):
            raise UserError(f"a study file must be TOML in UTF-8, got {found.kind} in {path.name}. {found.remedy}.")
        return path.name, tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise UserError(f"a study file must be readable, got {path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:  # not TOML, not text, too long a number, too deep
        raise UserError(f"a study file must be TOML, got {path.name}: {error}.") from None


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
