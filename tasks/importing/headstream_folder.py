"""A model that Headstream trained or exported: model.json, and a file of weights for each checkpoint."""

from dataclasses import replace
from pathlib import Path

from headstream.tasks.errors import UserError
from headstream.tasks.importing.careful_reading import read_json
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.foreign_tokenizer import find_tokenizer
from headstream.tasks.importing.layouts import SAME
from headstream.tasks.importing.placements import Origin, PlacedTensors, Placement, checked_model, parameters_of
from headstream.tasks.importing.settings import Settings, checked_architecture
from headstream.tasks.importing.stored_tensors import open_safetensors
from headstream.tasks.training.checkpoints import is_intervened

MODEL_CARD, CHECKPOINTS = "model.json", "checkpoints"


def open_headstream(path: Path) -> ForeignModel:
    """Open the model in a folder after its last step, or in one of its files of weights.

    Raises:
        UserError: it is incomplete, or contradicts itself.
    """
    folder = path if path.is_dir() else path.parent.parent
    weights, notes = (path, []) if path.is_file() else _last_checkpoint(folder)
    settings = Settings(read_json(folder / MODEL_CARD), folder / MODEL_CARD)
    architecture = checked_architecture(settings.path, **settings.section("architecture").all())
    d_vocab = settings.whole("d_vocab")
    step = int(weights.stem) if weights.stem.isdecimal() else None
    tokenizer, tokenizer_files, found = find_tokenizer(folder, {})
    if step is not None and "intervened" in settings and is_intervened(folder, step):
        raise UserError(
            f"{weights}: interventions of its training act on this checkpoint, and its weights alone are another model."
            " Take a checkpoint at which none does."
        )
    stored = open_safetensors((weights,))
    placements = [Placement(name, SAME, (name,)) for name in parameters_of(architecture, d_vocab)]
    files, notes = [settings.path, weights, *tokenizer_files], [*notes, *found]
    origin = Origin("headstream", files, tokenizer, notes)
    model = checked_model(origin, PlacedTensors(weights, stored, placements), architecture, d_vocab)
    return replace(model, step=step, tokens=None if step is None else _tokens_at(step, settings))


def _tokens_at(step: int, settings: Settings) -> int | None:
    """Number of tokens that a checkpoint had been trained on, if known."""
    if "tokens_per_step" in settings:
        return step * settings.whole("tokens_per_step")
    tokens = settings.section("tokens").all().get(str(step))
    return tokens if isinstance(tokens, int) else None


def _last_checkpoint(folder: Path) -> tuple[Path, list[str]]:
    files = sorted((folder / CHECKPOINTS).glob("*.safetensors"))
    if not files:
        raise UserError(f"{folder} has no {CHECKPOINTS}/*.safetensors. Give the whole folder.")
    return files[-1], [f"the last of {len(files)} checkpoints: {CHECKPOINTS}/*.safetensors"] if files[1:] else []
