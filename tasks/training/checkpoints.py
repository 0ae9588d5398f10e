"""Weights on disk: safetensors files beside a model.json that describes their model."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.models.interventions import Interventions
from headstream.models.transformer import Transformer
from headstream.tasks.storage.sealing import file_sha256
from headstream.tasks.study.training_interventions import InterventionConfig, passes_at


def write_model_card(
    folder: Path,
    model: Transformer,
    tokens: int | Mapping[int, int | None],
    intervened: Mapping[str, Any] | None = None,
) -> None:
    """Write the description of the model whose checkpoints are in this folder.

    `tokens` is the number that a step reads; or the number that each checkpoint was trained on, None if unknown.
    `intervened` are the interventions of its training, if there were any, and its BOS.
    """
    card = {
        "architecture": model.architecture.as_kept(),
        "d_vocab": model.d_vocab,
        **({"tokens_per_step": tokens} if isinstance(tokens, int) else {"tokens": dict(tokens)}),
        **({"intervened": dict(intervened)} if intervened else {}),
    }
    (folder / "model.json").write_text(json.dumps(card, indent=1))


def save_checkpoint(folder: Path, model: Transformer, step: int) -> None:
    """Write the weights after `step` training steps."""
    path = _path(folder, step)
    path.parent.mkdir(exist_ok=True)
    save_whole({name: p.detach().cpu().contiguous() for name, p in model.named_parameters()}, path)


def save_whole(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write tensors to a file that appears whole or not at all, even if the machine stops."""
    save_file(tensors, f"{path}.part", metadata)
    with open(f"{path}.part", "rb") as file:
        os.fsync(file.fileno())
    os.replace(f"{path}.part", path)


def checkpoint_steps(folder: Path) -> list[int]:
    """The steps at which weights were kept, ascending; 0 is the initialisation."""
    return sorted(int(path.stem) for path in (folder / "checkpoints").glob("*.safetensors"))


def weights_sha256(folder: Path) -> str:
    """A hash of all checkpoints in a folder, and of their model's description."""
    digest = hashlib.sha256((folder / "model.json").read_bytes())
    for step in checkpoint_steps(folder):
        digest.update(f"{step} {checkpoint_sha256(folder, step)}".encode())
    return digest.hexdigest()


def checkpoint_sha256(folder: Path, step: int) -> str:
    """A hash of the weights kept after `step` training steps."""
    return file_sha256(_path(folder, step))


def checkpoint_bytes(folder: Path, step: int) -> int:
    """Size of the file of the weights kept after `step` training steps."""
    return _path(folder, step).stat().st_size


def tokens_at(folder: Path) -> dict[int, int | None]:
    """Number of tokens that each checkpoint was trained on, by step; None if unknown."""
    card, steps = json.loads((folder / "model.json").read_text()), checkpoint_steps(folder)
    if "tokens" in card:
        return {step: card["tokens"][str(step)] for step in steps}
    return {step: step * card["tokens_per_step"] for step in steps}


def load_model(folder: Path, step: int, set_free: bool = False) -> Transformer:
    """The model as it was after `step` training steps, in float32 on the CPU.

    What was done to its passes by then is done to them still: heads that were silenced have no W_O, and what else
    there is are its `interventions`. `set_free` leaves that out.
    """
    card = json.loads((folder / "model.json").read_text())
    model = Transformer(Architecture.model_validate(card["architecture"]), card["d_vocab"])
    model.load_state_dict(load_file(_path(folder, step)))
    if not set_free:
        passes = _passes_at(folder, card, step)
        for head in passes.silenced:
            model.layers[head.layer].attention.W_O.data[head.head] = 0
        model.interventions = replace(passes, silenced=frozenset()) or None
    return model.eval().requires_grad_(False)


def is_intervened(folder: Path, step: int) -> bool:
    """True if something is done to the passes of the model as it was after `step` training steps."""
    return bool(_passes_at(folder, json.loads((folder / "model.json").read_text()), step))


def _passes_at(folder: Path, card: Mapping[str, Any], step: int) -> Interventions:
    intervened, tokens = card.get("intervened"), tokens_at(folder)[step]
    if intervened is None or tokens is None:
        return Interventions()
    given = tuple(InterventionConfig.model_validate_json(json.dumps(own)) for own in intervened["interventions"])
    return passes_at(given, Architecture.model_validate(card["architecture"]), tokens, intervened["bos"])


def _path(folder: Path, step: int) -> Path:
    return folder / "checkpoints" / f"{step:07d}.safetensors"
