"""Writes a model as a Hugging Face folder, in a model type that can represent it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.tasks.errors import UserError
from headstream.tasks.importing.exported_model import (
    ExportedFiles,
    ExportedModel,
    choices_of,
    differences,
    with_learned_positions,
    with_rotary_pairs,
    written_tensors,
)
from headstream.tasks.importing.huggingface_family import Family
from headstream.tasks.importing.huggingface_folder import CONFIG, FAMILIES
from headstream.tasks.importing.settings import Settings, checked_architecture


def as_huggingface(model: ExportedModel) -> ExportedFiles:
    """A model as the content of a Hugging Face folder.

    Raises:
        UserError: no model type can represent it.
    """
    shared = with_rotary_pairs(with_learned_positions(model), "half-split")
    choices = [(kind, written) for kind in FAMILIES for written in _with_feed_forward(shared.architecture)]
    lacking = [_lacking(written, FAMILIES[kind]) for kind, written in choices]
    nearest = min(range(len(choices)), key=lambda each: len(lacking[each]))
    if lacking[nearest]:
        kind = choices[nearest][0]
        raise UserError(
            f"no model type of Hugging Face ({', '.join(FAMILIES)}) can represent the model: the nearest, {kind}, can't"
            f" have {', '.join(lacking[nearest])}. Export it --to headstream."
        )
    fitting = [choice for choice, lacks in zip(choices, lacking, strict=True) if not lacks]
    (kind, written), config, tensors = _first_with_tensors(shared, fitting)
    family = FAMILIES[kind]
    about: dict[str, Any] = {"architectures": [family.class_name], "model_type": kind, "torch_dtype": "float32"}
    about |= {"vocab_size": model.d_vocab, "bos_token_id": model.bos, "eos_token_id": None, "pad_token_id": None}
    notes = [f"written as {kind}"]
    if model.architecture.positions != shared.architecture.positions:
        notes.append(f"{model.architecture.positions} positions are written as a table of learned ones")
    if model.architecture.rotary_pairs != shared.architecture.rotary_pairs:
        notes.append("dimensions of queries and keys are reordered alike, so that rotary pairs lie half a head apart")
    if written.feed_forward != shared.architecture.feed_forward:
        notes.append("it gets feed-forward layers whose weights are 0, since every model type has some")
    return ExportedFiles(about | config, tensors, notes)


def _first_with_tensors(
    shared: ExportedModel, choices: Sequence[tuple[str, Architecture]]
) -> tuple[tuple[str, Architecture], dict[str, Any], dict[str, Tensor]]:
    """The first of several model types that has tensors for all parameters, with its config and these.

    Raises:
        UserError: none has; says what the first one lacks.
    """
    refused: list[UserError] = []
    for kind, written in choices:
        family, config = FAMILIES[kind], FAMILIES[kind].config(written)
        placements = family.placements(written, config)
        try:
            return (kind, written), config, written_tensors(shared, _read_back(written, family), placements, kind)
        except UserError as error:
            refused.append(error)
    raise refused[0]


def _with_feed_forward(architecture: Architecture) -> list[Architecture]:
    """The architecture, if it has feed-forward layers; else it with small ones of each kind, which may add nothing."""
    if architecture.feed_forward != "none" or not architecture.n_layers:
        return [architecture]
    kinds = ("swiglu", "gelu_tanh")
    return [architecture.model_copy(update={"feed_forward": kind, "d_mlp": 1}) for kind in kinds]


def _lacking(architecture: Architecture, family: Family) -> list[str]:
    """Choices of an architecture that a model type lacks, found by reading back the nearest config."""
    try:
        return differences(architecture, _read_back(architecture, family))
    except UserError:  # no config comes near
        return list(choices_of(architecture))


def _read_back(architecture: Architecture, family: Family) -> Architecture:
    path = Path(CONFIG)
    return checked_architecture(path, **family.fields(Settings(family.config(architecture), path)))
