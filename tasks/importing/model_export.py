"""Exports a model of the store to other formats, as of any of its steps, with its tokenizer."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headstream.models.bos import NO_BOS
from headstream.tasks.errors import UserError
from headstream.tasks.importing.exported_model import ExportedFiles, ExportedModel, file_metadata
from headstream.tasks.importing.foreign_tokenizer import OPTIONS, TOKENIZER
from headstream.tasks.importing.headstream_folder import CHECKPOINTS, MODEL_CARD
from headstream.tasks.importing.huggingface_export import as_huggingface
from headstream.tasks.importing.huggingface_folder import CONFIG, WEIGHTS
from headstream.tasks.importing.transformer_lens_export import as_transformer_lens
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import is_intervened, load_model, save_whole, tokens_at

FORMATS: dict[str, Callable[[ExportedModel], ExportedFiles]] = {
    "huggingface": as_huggingface,
    "transformer-lens": as_transformer_lens,
}


def export_checkpoints(format: str, model: Path, tokens: Path, steps: Sequence[int], folder: Path) -> list[str]:
    """Write a model of the store as of these steps: a single one into the folder itself, several into subfolders.

    `model` and `tokens` are folders of artifacts. Returns notes for the user.

    Raises:
        UserError: the folder isn't empty, or the format can't represent the model.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists and isn't an empty folder. Choose another, or empty it.")
    text, notes = Tokens.open(tokens), list[str]()
    bos = None if text.bos == NO_BOS else text.bos
    for step in steps:
        _require_own_passes(model, step)
        target = folder / f"step{step:07}" if len(steps) > 1 else folder
        if format == "headstream":
            _copy(model, step, target)
        else:
            notes += write_checkpoint(format, _loaded(model, step, bos), target)
        _write_tokenizer(text, bos, target)
    return list(dict.fromkeys(notes))


def write_checkpoint(format: str, model: ExportedModel, folder: Path) -> list[str]:
    """Write a model's config and weights. Returns notes for the user.

    Raises:
        UserError: the format can't represent the model.
    """
    config, tensors, notes = FORMATS[format](model)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_text(json.dumps(config, indent=1))
    save_whole(dict(tensors), folder / WEIGHTS, file_metadata(model))
    return notes


def _require_own_passes(model: Path, step: int) -> None:
    """Raises UserError when interventions do to a model what no other format can say."""
    if is_intervened(model, step):
        raise UserError(
            f"the checkpoint of step {step} can't be exported: interventions of its training act on it, which no format"
            " can say. Choose a step at which none does."
        )


def _loaded(model: Path, step: int, bos: int | None) -> ExportedModel:
    module = load_model(model, step)
    weights = dict(module.named_parameters())
    return ExportedModel(module.architecture, module.d_vocab, weights, bos, step, tokens_at(model)[step])


def _copy(model: Path, step: int, folder: Path) -> None:
    """Copy the files that training or an import wrote, unchanged."""
    (folder / CHECKPOINTS).mkdir(parents=True)
    for name in (MODEL_CARD, f"{CHECKPOINTS}/{step:07}.safetensors"):
        shutil.copyfile(model / name, folder / name)


def _write_tokenizer(text: Tokens, bos: int | None, folder: Path) -> None:
    """Write the tokenizer, and the token that opens documents: versions of transformers look for it in either file."""
    content = json.loads((text.folder / TOKENIZER).read_text())
    options = {"tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": bos is not None}
    if bos is not None:
        token = options["bos_token"] = str(text.tokenizer.id_to_token(bos))
        content["post_processor"] = content.get("post_processor") or _opening(token, bos)
    (folder / TOKENIZER).write_text(json.dumps(content, ensure_ascii=False))
    (folder / OPTIONS).write_text(json.dumps(options, indent=1))


def _opening(token: str, id: int) -> dict[str, Any]:
    """A tokenizer's last step that puts a token before every text."""
    opens, text = {"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    other = {"Sequence": {"id": "B", "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [opens, text],
        "pair": [opens, text, opens, other],
        "special_tokens": {token: {"id": token, "ids": [id], "tokens": [token]}},
    }
