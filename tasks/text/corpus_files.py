"""The files that a corpus is read from, and a digest of their content."""

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
from headstream.tasks.text.file_formats import TABLE_SUFFIXES, TEXT_SUFFIXES
from headstream.tasks.text.folder_files import GLOB_CHARACTERS, entries_below, files_below
from headstream.tasks.text.source_files import BROKEN, Budget, SourceFile, format_suffix, reason


def corpus_files(config: CorpusConfig, left_out: set[Path] | None = None) -> list[SourceFile]:
    """The files that the corpus is read from, each once, in a fixed order.

    Links are followed, except by `**`. Names start at the directory given, never at the root. What is no file, such as
    a link to nothing or a pipe, is added to `left_out`.
    Raises: UserError for an entry of `paths` that gives none.
    """
    others = set() if left_out is None else left_out
    matches = partial(_matches, has_text=partial(_has_text, config), left_out=others)
    built_in = chain.from_iterable(map(built_in_files, sources_of(config)))
    given = chain.from_iterable(map(matches, config.paths))
    files: dict[str, SourceFile] = {}
    for path, name in chain(built_in, given):
        # A name on disk may be any bytes; in a table it must be text.
        name = os.fsencode(name).decode(errors="replace")
        files.setdefault(os.path.realpath(path), SourceFile(path, name, path.stat().st_size))
    return list(files.values())


def corpus_fingerprint(config: CorpusConfig) -> dict[str, Any]:
    """The identity of the raw input: a digest of all files' names and bytes, and Python's version for its library.

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
            raise UserError(f"can't read {file.name}: {reason(error)}.") from error
    remembered.keep()
    return {
        "source": corpus_label(config),
        "python": platform.python_version() if "python-stdlib" in sources_of(config) else None,
        "files": len(files),
        "bytes": sum(file.bytes for file in files),
        "sha256": digest.hexdigest(),
    }


def corpus_label(config: CorpusConfig) -> str:
    """A corpus's name in reports: that of a built-in one, or its paths."""
    return ", ".join(sources_of(config) or config.paths)


def _has_text(config: CorpusConfig, path: Path) -> bool:
    """True if the first record of a file has text, or if the file is broken: then it must not be left out silently."""
    rules = config.model_copy(update={"on_bad_text": "replace"})
    reader = Reader(rules, Budget(config.max_expansion, config.max_bytes))
    try:
        return next(reader.read(SourceFile(path, path.name, path.stat().st_size)), None) is not None
    except UserError as error:
        return isinstance(error.__cause__, BROKEN)


def _matches(pattern: str, has_text: Callable[[Path], bool], left_out: set[Path]) -> Iterator[tuple[Path, str]]:
    """The files that an entry of `paths` matches, with their names."""
    path = Path(os.path.abspath(os.path.expanduser(pattern)))
    while path.name == "**" and not os.path.lexists(path):  # everything below a folder is the folder
        path = path.parent
    top = path
    while not os.path.lexists(path) and GLOB_CHARACTERS & set(str(top)):
        top = top.parent
    try:
        matches = [path] if top == path else sorted(top.glob(_valid_glob(path.relative_to(top))))
        visible = (match for match in matches if not _is_hidden(match.relative_to(top)))
        files = [file for match in visible for file in _files(match, has_text, left_out)]
        why = "it isn't a file, and no file in it has a known suffix"
        if not files:
            path.stat()
            unknown = sorted({file.suffix or file.name for file in files_below(path)}) if path.is_dir() else []
            if unknown:
                why += f" (only {', '.join(unknown[:5])})"
    except (OSError, ValueError) as error:
        files, why = [], reason(error)
    if not files:
        raise UserError(f"there is nothing to read at {pattern!r}: {why}. Correct or remove it.")
    for file in files:
        yield file, file.relative_to(top.parent).as_posix()


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _valid_glob(pattern: Path) -> str:
    """The pattern as text.

    Raises:
        ValueError: `**` is only part of a name in it, which only Python up to 3.12 refuses.
    """
    for part in pattern.parts:
        if "**" in part and part != "**":
            raise ValueError(f"`**` must be a whole part of a path, as in text/**/*.txt, and not {part!r}")
    return str(pattern)


def _files(path: Path, has_text: Callable[[Path], bool], left_out: set[Path]) -> list[Path]:
    """`path` itself if it is a file, or the readable files below it if it is a folder."""
    if os.path.isfile(path):
        return [path]
    entries = [*entries_below(path)] if os.path.isdir(path) else [path]
    inside = [entry for entry in entries if entry.is_file()]
    left_out.update(set(entries).difference(inside))
    tables = [file for file in inside if format_suffix(file.name) in TABLE_SUFFIXES]
    with_text = set(filter(has_text, tables))
    found = [file for file in inside if file in with_text or format_suffix(file.name) in TEXT_SUFFIXES]
    return found or tables  # if there is nothing else, reading these will say what they lack
