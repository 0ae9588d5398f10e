"""Tells which formats a model can be exported to, before it is trained."""

import torch

from headstream.models.architecture import Architecture
from headstream.tasks.errors import UserError
from headstream.tasks.importing.exported_model import ExportedModel
from headstream.tasks.importing.model_export import FORMATS
from headstream.tasks.importing.placements import parameters_of


def fit_of(format: str, architecture: Architecture) -> str:
    """What a model is written as in a format, such as `written as llama`, or why that can't represent it."""
    d_vocab = 2  # which decides nothing
    parameters = parameters_of(architecture, d_vocab)
    learned = {name: torch.full(declared.shape, 0.5 + i) for i, (name, declared) in enumerate(parameters.items())}
    try:
        notes = FORMATS[format](ExportedModel(architecture, d_vocab, learned, bos=0, step=0, tokens=None)).notes
    except UserError as error:
        return f"no: {str(error).removesuffix(' Export it --to headstream.')}"
    return "; ".join(notes) or "yes"
