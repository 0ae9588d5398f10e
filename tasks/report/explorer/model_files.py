"""Where the weights of a study's models are, and the tokens that they were trained on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headstream.tasks.storage.artifact import MAKE_MODELS, Artifact
from headstream.tasks.storage.store import Store

EXPLORER = "explorer.html"  # beside each report


@dataclass(frozen=True)
class ModelFiles:
    """Folders that hold a model's checkpoints and its tokens."""

    checkpoints: Path
    tokens: Path


def files_of_models(store: Store, record: Artifact) -> Mapping[str, ModelFiles]:
    """The files of each model that a study's record names, verified; models that the store has lost have none."""
    found = {}
    for role, reference in record.manifest.inputs.items():
        stage, _, model_id = role.partition("/")
        if stage in MAKE_MODELS and (made := store.open(stage, reference.key)):
            tokens = store.open("tokens", made.manifest.inputs["tokens"].key)
            if tokens:
                found[model_id] = ModelFiles(made.folder, tokens.folder)
    return found
