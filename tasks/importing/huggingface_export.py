"""A model written as a folder of Hugging Face's, by the model type that can hold it."""

from pathlib import Path
from typing import Any

from headstream.models.architecture import Architecture
from headstream.tasks.errors import UserError
from headstream.tasks.importing.exported_model import (
    ExportedFiles,
    ExportedModel,
    choices_of,
    differences,
    with_half_split_pairs,
    with_learned_positions,
    written_tensors,
)
from headstream.tasks.importing.huggingface_family import Family
from headstream.tasks.importing.huggingface_folder import CONFIG, FAMILIES
from headstream.tasks.importing.settings import Settings, checked_architecture


def as_huggingface(model: ExportedModel) -> ExportedFiles:
    """A model as a folder of Hugging Face's.

    Raises:
        UserError: no model type can hold it.
    """
    shared = with_half_split_pairs(with_learned_positions(model))
    lacking = {kind: _lacking(shared.architecture, family) for kind, family in FAMILIES.items()}
    kind = min(lacking, key=lambda each: len(lacking[each]))
    if lacking[kind]:
        raise UserError(
            f"a model must be of a type that Hugging Face has ({', '.join(FAMILIES)}), got {', '.join(lacking[kind])},"
            f" which {kind}, the nearest, can't have. Export it --to headstream."
        )
    family = FAMILIES[kind]
    config = family.config(shared.architecture)
    placements = family.placements(shared.architecture, config)
    tensors = written_tensors(shared, _read_back(shared.architecture, family), placements, kind)
    about: dict[str, Any] = {"architectures": [family.class_name], "model_type": kind, "torch_dtype": "float32"}
    about |= {"vocab_size": model.d_vocab, "bos_token_id": model.bos, "eos_token_id": None, "pad_token_id": None}
    notes = [f"written as {kind}"]
    if model.architecture.positions != shared.architecture.positions:
        notes.append(f"{model.architecture.positions} positions are written as a table of learned ones")
    if model.architecture.rotary_pairs != shared.architecture.rotary_pairs:
        notes.append("dimensions of queries and keys changed places alike: rotary pairs lie half a head apart there")
    return ExportedFiles(about | config, tensors, notes)


def _lacking(architecture: Architecture, family: Family) -> list[str]:
    """The choices of an architecture that a model type can't make, as the config that comes nearest is read again."""
    try:
        return differences(architecture, _read_back(architecture, family))
    except UserError:  # no config comes near
        return list(choices_of(architecture))


def _read_back(architecture: Architecture, family: Family) -> Architecture:
    path = Path(CONFIG)
    return checked_architecture(path, **family.fields(Settings(family.config(architecture), path)))
