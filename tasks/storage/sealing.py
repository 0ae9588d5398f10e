"""Turns a written folder into an artifact: every file on the disk and in the manifest, which is written last."""

import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headstream.tasks.errors import WorkError
from headstream.tasks.storage.artifact import (
    FILE_NAME,
    MANIFEST,
    InputReference,
    Manifest,
    Spec,
    StoredFile,
    json_sha256,
)

RESUME = ".resume"  # a subfolder for the state of an interrupted run, which is not committed


def seal(staging: Path, spec: Spec, facts: Mapping[str, Any], incidental: Collection[str], seconds: float) -> None:
    """Make a written folder durable, its manifest last."""
    files, folders = _contents(staging)
    inputs = {
        role: InputReference(stage=source.manifest.stage, key=source.manifest.key, digest=source.digest)
        for role, source in spec.inputs.items()
    }
    manifest = Manifest(
        **{**vars(spec), "inputs": inputs},
        key=spec.key,
        files={
            name: StoredFile(bytes=path.stat().st_size, sha256=file_sha256(path), incidental=name in incidental)
            for name, path in files.items()
        },
        facts=dict(facts),
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seconds=round(seconds, 3),
    )
    for path in [*files.values(), *folders]:
        fsync(path)
    fields = manifest.model_dump()
    # Without a checksum of its own, a flipped byte in the manifest's facts would go unnoticed.
    text = json.dumps({**fields, "checksum": json_sha256(fields)}, indent=2)
    (staging / MANIFEST).write_text(f"{text}\n")
    fsync(staging / MANIFEST)


def file_sha256(path: Path) -> str:
    """A hash of a file's bytes."""
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fsync(path: Path) -> None:
    """Flush a file or folder to the disk, so that it survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _contents(staging: Path) -> tuple[dict[str, Path], list[Path]]:
    """The files to commit by their names, and their subfolders."""
    files, folders = {}, []
    for path in sorted(staging.rglob("*")):
        name = path.relative_to(staging).as_posix()
        if name.split("/")[0] == RESUME:
            continue
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise WorkError(f"{path} is not a plain file or folder, and an artifact holds nothing else. Write a copy.")
        if not re.fullmatch(FILE_NAME, name) or name == MANIFEST:
            raise WorkError(
                "the name of a file in an artifact must consist of ASCII letters, digits and _ . = + -, start with one "
                f"of the first three, and not be {MANIFEST}, got {name!r}. Rename it."
            )
        if path.is_dir():
            folders.append(path)
        else:
            files[name] = path
    return files, folders
