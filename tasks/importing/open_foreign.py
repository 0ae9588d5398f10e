"""Opens a model from elsewhere, in any of the known formats."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headstream.tasks.errors import UserError
from headstream.tasks.importing.careful_reading import is_there, read_json
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.gguf_model import open_gguf
from headstream.tasks.importing.headstream_folder import CHECKPOINTS, MODEL_CARD, open_headstream
from headstream.tasks.importing.huggingface_folder import CONFIG, open_huggingface
from headstream.tasks.importing.nanogpt_file import open_nanogpt
from headstream.tasks.importing.stored_tensors import held_tensors, open_safetensors
from headstream.tasks.importing.torch_file import read_torch_file
from headstream.tasks.importing.transformer_lens_model import open_transformer_lens
from headstream.tasks.storage.remembered_files import remembered_files, sha256_of

SNAPSHOTS = "snapshots"  # of a model's branches, in Hugging Face's cache
TORCH, SAFETENSORS, GGUF = (".pt", ".pth", ".ckpt"), ".safetensors", ".gguf"
_FORMATS = (
    "a Hugging Face folder (config.json and safetensors), a nanoGPT checkpoint, a TransformerLens state dict with its"
    " config, a GGUF file of the llama architecture, or a folder that Headstream exported"
)


def open_foreign(path: Path) -> ForeignModel:
    """Open the model in a file or folder: its header is read and checked, its weights aren't yet.

    Raises:
        UserError: there is no model, or one that Headstream can't represent.
    """
    path = path.expanduser()
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, ValueError) as error:
        raise UserError(f"can't open a model: {error}. Correct the path.") from None
    if is_folder:
        return _open_folder(path)
    if is_file:
        return _open_file(path)
    raise UserError(f"there is no file or folder {path}. Correct the path.")


def holds_model(folder: Path) -> bool:
    """True if a folder has what describes a model, or weights."""
    described = is_there(folder / MODEL_CARD) or is_there(folder / CONFIG)
    return described or any(path.suffix in (*TORCH, SAFETENSORS, GGUF) for path in folder.glob("*"))


def content_hash(model: ForeignModel) -> str:
    """A hash of the bytes of all files that define a model."""
    remembered = remembered_files("models")
    hashes = [remembered.recall(path, sha256_of) for path in model.files]
    remembered.keep()
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()


def _open_folder(folder: Path) -> ForeignModel:
    if is_there(folder / MODEL_CARD):
        return open_headstream(folder)
    if is_there(folder / CONFIG) and not _of_transformer_lens(read_json(folder / CONFIG)):
        return open_huggingface(folder)
    files = sorted(path for path in folder.iterdir() if path.suffix in (*TORCH, SAFETENSORS, GGUF))
    if len(files) == 1:
        return _open_file(files[0])
    within = folder / SNAPSHOTS if is_there(folder / SNAPSHOTS) else folder
    inner = sorted(path for path in within.glob("*") if is_there(path / MODEL_CARD) or is_there(path / CONFIG))
    if inner:
        raise UserError(
            f"{folder} holds {len(inner)} models. Give one of them, such as {inner[0]}; in a study, all if they are"
            " checkpoints of one training, and have their steps in their names."
        )
    if files:
        raise UserError(f"{folder} holds {len(files)} files of weights. Give one of them.")
    raise UserError(f"{folder} holds no model that can be read. Give {_FORMATS}.")


def _open_file(path: Path) -> ForeignModel:
    beside = path.parent / CONFIG
    config = read_json(beside) if is_there(beside) else {}
    if path.suffix == GGUF:
        return open_gguf(path)
    if path.suffix in TORCH:
        return _open_torch(path, config)
    if path.suffix == SAFETENSORS and path.parent.name == CHECKPOINTS and is_there(path.parent.parent / MODEL_CARD):
        return open_headstream(path)
    if path.suffix == SAFETENSORS and _of_transformer_lens(config):
        return open_transformer_lens(path, [beside, path], config, open_safetensors((path,)))
    if path.suffix == SAFETENSORS and config:
        return open_huggingface(path.parent)
    raise UserError(f"{path} is not a model that can be read. Give {_FORMATS}.")


def _open_torch(path: Path, config: Mapping[str, Any]) -> ForeignModel:
    content = read_torch_file(path)
    if "model_args" in content:
        return open_nanogpt(path, content)
    own = next((content[name] for name in ("cfg", "config") if isinstance(content.get(name), dict)), None)
    state = next((content[name] for name in ("state_dict", "model_state_dict", "model") if name in content), content)
    if own is not None and _of_transformer_lens(own):
        return open_transformer_lens(path, [path], own, held_tensors(path, state))
    if _of_transformer_lens(config):
        return open_transformer_lens(path, [path.parent / CONFIG, path], config, held_tensors(path, state))
    raise UserError(
        f"{path} doesn't describe its model: it has neither nanoGPT's model_args nor TransformerLens's config, as `cfg`"
        f" in the file or as {CONFIG} beside it. Save it again with one of them."
    )


def _of_transformer_lens(config: Mapping[str, Any]) -> bool:
    """True if a config is a dictionary of HookedTransformerConfig."""
    return "model_type" not in config and {"d_model", "n_layers", "n_ctx"} <= config.keys()
