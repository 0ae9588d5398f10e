"""The text of studies: of those that ship, and of files."""

import difflib
import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.files.non_text import HEAD_BYTES, detect_non_text

MAX_BYTES = 64 << 10  # parsing TOML takes quadratic time


@dataclass(frozen=True)
class StudyFile:
    """The text of a study (TOML, or JSON if it had no file), its name in messages, and its path."""

    label: str
    text: str
    path: Path | None = None  # None: it came through Prefect
    note: str = ""  # something that the user should know about it

    @property
    def ships(self) -> bool:
        """True if it is one of the studies that ship."""
        return self.path is not None and self.path.parent == places.STUDIES

    def content(self) -> dict[str, Any]:
        """The parsed text, with relative paths of its corpus and models resolved from the file's folder.

        Raises:
            UserError: it isn't TOML.
        """
        try:
            content: dict[str, Any] = json.loads(self.text) if self.path is None else tomllib.loads(self.text)
        except (ValueError, RecursionError) as error:  # not TOML, too long a number, too deep
            raise UserError(f"{self.label} is not valid TOML: {error}.") from None
        return located(content, self.path.parent) if self.path else content


def read_study_file(path: Path) -> StudyFile:
    """Read the study file at a path.

    Raises:
        UserError: it can't be read, is too large, or isn't text.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UserError(
                f"a study file must be at most {MAX_BYTES:,} bytes, got more in {path}. Give the path of a study."
            )
        found = detect_non_text(content[:HEAD_BYTES])
        if found:
            raise UserError(f"a study file must be TOML in UTF-8, got {found.kind} in {path.name}. {found.remedy}.")
        return StudyFile(path.name, content.decode("utf-8-sig"), path)
    except OSError as error:
        raise UserError(f"can't read the study file {path}: {error.strerror}.") from None
    except ValueError as error:
        raise UserError(f"{path.name} is not valid TOML: {error}.") from None


def shipped_studies() -> list[str]:
    """Names of the studies that ship."""
    return sorted(path.stem for path in places.STUDIES.glob("*.toml"))


def shipped(name: str) -> StudyFile | None:
    """The shipped study of that name, if there is one."""
    return read_study_file(places.STUDIES / f"{name}.toml") if name in shipped_studies() else None


def unknown_study(kind: str, name: str, known: list[str]) -> UserError:
    """The error for a name that no study of this kind has."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
    return UserError(f"there is no {kind} {name[:200]!r}. {hint}")


def located(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A study's content, valid or not, with absolute paths: those of corpus, prompts and models, from a folder."""
    study = dict(content)
    corpus, prompts, models = (study.get(section) for section in ("corpus", "prompts", "models"))
    if isinstance(corpus, dict) and isinstance(corpus.get("paths"), list):
        study["corpus"] = {**corpus, "paths": [_located(path, folder) for path in corpus["paths"]]}
    if isinstance(prompts, list):
        study["prompts"] = [_with_located_path(own, folder) for own in prompts]
    if isinstance(models, list):
        study["models"] = [_with_located_files(model, folder) for model in models]
    return study


def _with_located_path(prompts: Any, folder: Path) -> Any:
    """A [[prompts]] section, valid or not, with an absolute path."""
    given = prompts.get("path") if isinstance(prompts, dict) else None
    return {**prompts, "path": _located(given, folder)} if isinstance(given, str) else prompts


def _with_located_files(model: Any, folder: Path) -> Any:
    """A [[models]] section, valid or not, with absolute paths; those within a package stay as they are."""
    if not isinstance(model, dict):
        return model
    files = dict(model)
    for name in ("path", "tokenizer"):
        if name not in model or (name == "path" and "package" in model):
            continue
        given = model[name]
        several = isinstance(given, list)
        files[name] = [_located(path, folder) for path in given] if several else _located(given, folder)
    return files


def _located(path: Any, folder: Path) -> Any:
    """An entry of `paths`, valid or not, as an absolute path; `~` stays as it is."""
    is_relative = isinstance(path, str) and path and not path.startswith("~")
    return os.path.abspath(folder / path) if is_relative else path
