"""Which files a corpus is read from, and a digest of what they hold."""

import hashlib
import os
import platform
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from headstream.tasks.errors import UserError
from headstream.tasks.storage.artifact import json_sha256
from headstream.tasks.storage.remembered_files import remembered_files, sha256_of
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.text.built_in_corpora import built_in_files, sources_of
from headstream.tasks.text.documents import Reader
from headstream.tasks.text.file_formats import ALWAYS_TEXT, TABLES
from headstream.tasks.text.folder_files import files_below
from headstream.tasks.text.source_files import BROKEN, Budget, SourceFile, format_suffix, reason


def corpus_files(config: CorpusConfig) -> list[SourceFile]:
    """The files that the corpus is read from, each once, in a fixed order.

    Links are followed, except by `**`. Names start at the directory given, never at the root.
    Raises: UserError for an entry of `paths` that gives none.
    """
    matches = partial(_matches, has_text=partial(_has_text, config))
    built_in = chain.from_iterable(map(built_in_files, sources_of(config)))
    given = chain.from_iterable(map(matches, config.paths))
    files: dict[str, SourceFile] = {}
    for path, name in chain(built_in, given):
        # A name on disk may be any bytes; in a table it must be text.
        name = os.fsencode(name).decode(errors="replace")
        files.setdefault(os.path.realpath(path), SourceFile(path, name, path.stat().st_size))
    return list(files.values())


def corpus_fingerprint(config: CorpusConfig) -> dict[str, Any]:
    """What identifies the raw input: a digest of each file's name and bytes; Python's version for its library.

    Raises:
        UserError: an entry of `paths` gives no files, or a file can't be read.
    """
    files = corpus_files(config)
    remembered = remembered_files(f"corpus-{json_sha256(config.model_dump(mode='json'))[:16]}")
    digest = hashlib.sha256()
    for file in files:
        try:
            digest.update(f"{remembered.recall(file.path, sha256_of)} {file.name}\n".encode())
        except OSError as error:
            raise UserError(f"{file.name} must be readable, got: {reason(error)}.") from error
    remembered.keep()
    return {
        "source": corpus_label(config),
        "python": platform.python_version() if "python-stdlib" in sources_of(config) else None,
        "files": len(files),
        "bytes": sum(file.bytes for file in files),
        "sha256": digest.hexdigest(),
    }


def corpus_label(config: CorpusConfig) -> str:
    """What reports call a corpus: the name of a built-in one, or its paths."""
    return ", ".join(sources_of(config) or config.paths)


def _has_text(config: CorpusConfig, path: Path) -> bool:
    """Whether the first record of a file has text; true of a broken file, too, so that it is not left out unseen."""
    reader = Reader(config.text_field, "replace", config.document_bytes, Budget(config.max_expansion, config.max_bytes))
    try:
        return next(reader.read(SourceFile(path, path.name, path.stat().st_size)), None) is not None
    except UserError as error:
        return isinstance(error.__cause__, BROKEN)


def _matches(pattern: str, has_text: Callable[[Path], bool]) -> Iterator[tuple[Path, str]]:
    """The files that one entry of `paths` stands for, with their names."""
    path = Path(os.path.abspath(os.path.expanduser(pattern)))
    while path.name == "**" and not os.path.lexists(path):  # all below a folder is what the folder gives
        path = path.parent
    top = path
    while not os.path.lexists(path) and any(magic in str(top) for magic in "*?["):
        top = top.parent
    try:
        matches = [path] if top == path else sorted(top.glob(_valid_glob(path.relative_to(top))))
        visible = (m for m in matches if not any(part.startswith(".") for part in m.relative_to(top).parts))
        files = [file for match in visible for file in _files(match, has_text)]
        why = "it is no file, and no file in it has a known suffix"
        if not files:
            path.stat()
            unknown = sorted({file.suffix or file.name for file in files_below(path)}) if path.is_dir() else []
            why += f" (they have {', '.join(unknown[:5])})" * bool(unknown)
    except (OSError, ValueError) as error:
        files, why = [], reason(error)
    if not files:
        raise UserError(f"each of paths must give files to read, got {pattern!r}: {why}. Correct or remove it.")
    for file in files:
        yield file, file.relative_to(top.parent).as_posix()


def _valid_glob(pattern: Path) -> str:
    """The pattern as text.

    Raises:
        ValueError: a part of it says more than `**`, which only Python up to 3.12 refuses.
    """
    if part := next((part for part in pattern.parts if "**" in part and part != "**"), None):
        raise ValueError(f"`**` must be a whole part of a path, as in text/**/*.txt, and not {part!r}")
    return str(pattern)


def _files(path: Path, has_text: Callable[[Path], bool]) -> list[Path]:
    """`path` itself when it is a file, or what can be read below it when it is a directory."""
    if os.path.isfile(path):
        return [path]
    if not os.path.isdir(path):
        return []
    inside = [*files_below(path)]
    tables = [file for file in inside if format_suffix(file.name) in TABLES]
    with_text = set(filter(has_text, tables))
    found = [file for file in inside if file in with_text or format_suffix(file.name) in ALWAYS_TEXT]
    return found or tables  # with nothing else to read, reading these says what they lack
