"""Artifacts: their manifests, and the specs that decide their keys."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, StringConstraints

MANIFEST = "manifest.json"
MAKE_MODELS = ("training", "import")  # stages whose artifacts are models; no model is made by both
FILE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.=+-]*(/[A-Za-z0-9_][A-Za-z0-9_.=+-]*)*$"


class StoredFile(BaseModel, frozen=True, extra="forbid"):
    """A file's entry in the manifest; `incidental` files describe the making: the clock, or where text was found."""

    bytes: int
    sha256: str
    incidental: bool


class InputReference(BaseModel, frozen=True, extra="forbid"):
    """An artifact that another one was made from."""

    stage: str
    key: str
    digest: str


class Manifest(BaseModel, frozen=True, extra="forbid"):
    """An artifact's content, what decided it, when it was made (ISO 8601, UTC) and in how many seconds."""

    stage: str
    key: str
    code_version: str
    config: dict[str, Any]
    inputs: dict[str, InputReference]
    numerics: dict[str, Any]
    files: dict[Annotated[str, StringConstraints(pattern=FILE_NAME)], StoredFile]
    facts: dict[str, Any]
    created: str
    seconds: float


@dataclass(frozen=True)
class Artifact:
    """A committed folder of files and its manifest."""

    folder: Path
    manifest: Manifest

    @property
    def digest(self) -> str:
        """A hash of its files without the incidental ones: all that matters to artifacts made from it."""
        return json_sha256({name: file.sha256 for name, file in self.manifest.files.items() if not file.incidental})

    @property
    def named(self) -> str:
        """Its stage and, where that makes several artifacts of a subject, the part that it is of."""
        return f"{self.manifest.stage} {self.manifest.config.get('part', '')}".strip()

    @property
    def bytes(self) -> int:
        """Bytes of its files, its manifest not counted."""
        return sum(file.bytes for file in self.manifest.files.values())


@dataclass(frozen=True)
class Spec:
    """Everything that decides an artifact's content: equal specs have equal keys, and so share one artifact.

    `config` holds the part of the study that the stage reads, and the ids that its rows carry; `inputs` maps roles to
    artifacts, of which only the content counts; `numerics` holds everything else that changes numbers: device kind,
    precision, thread count, compiling.
    """

    stage: str
    code_version: str
    config: Mapping[str, Any]
    inputs: Mapping[str, Artifact]
    numerics: Mapping[str, Any]

    @property
    def key(self) -> str:
        """A hash of the spec, 32 hexadecimal digits: the name of the artifact's folder."""
        inputs = {role: artifact.digest for role, artifact in self.inputs.items()}
        return json_sha256({**vars(self), "inputs": inputs})[:32]


def read_manifest(folder: Path) -> Artifact:
    """Read an artifact's manifest; its files are not verified.

    Raises: ValueError when the manifest can't be trusted.
    """
    fields = json.loads((folder / MANIFEST).read_bytes())
    if not isinstance(fields, dict) or fields.pop("checksum", None) != json_sha256(fields):
        raise ValueError(f"{MANIFEST} does not match its own checksum")
    manifest = Manifest.model_validate(fields)
    if (manifest.stage, manifest.key) != (folder.parent.name, folder.name):
        raise ValueError(f"{MANIFEST} is that of {manifest.stage}/{manifest.key}")
    return Artifact(folder, manifest)


def json_sha256(value: Mapping[str, Any]) -> str:
    """A hash of a value's canonical JSON text.

    Raises: ValueError when the value isn't JSON.
    """
    try:
        plain = json.loads(json.dumps(value, allow_nan=False))  # keys must be strings before they are sorted
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"config, numerics and facts must be JSON with finite numbers, got: {error}. "
            "Use str, int, float, bool, list and dict, and None for what is missing."
        ) from error
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
