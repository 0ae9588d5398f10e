"""The logits that a model's files define, whatever their format."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from headstream.models.known_options import unknown_options
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.gemma import gemma2_logits, gemma3_logits, gemma_logits
from headstream.tasks.importing.reference.gguf_file import read_gguf
from headstream.tasks.importing.reference.gpt2 import gpt2_logits, nanogpt_logits
from headstream.tasks.importing.reference.gpt_neo import gpt_neo_logits
from headstream.tasks.importing.reference.gpt_neox import gpt_neox_logits
from headstream.tasks.importing.reference.headstream import DEFINED, headstream_logits
from headstream.tasks.importing.reference.llama import gguf_llama_logits, llama_logits
from headstream.tasks.importing.reference.olmo import olmo2_logits, olmo_logits
from headstream.tasks.importing.reference.opt import opt_logits
from headstream.tasks.importing.reference.phi import phi_logits
from headstream.tasks.importing.reference.phi3 import phi3_logits
from headstream.tasks.importing.reference.qwen3 import qwen3_logits
from headstream.tasks.importing.reference.transformer_lens import transformer_lens_logits
from headstream.tasks.importing.stored_tensors import open_safetensors
from headstream.tasks.importing.torch_file import read_torch_file

Definition = Callable[[FileTensors, Mapping[str, Any], Tensor], Tensor]
HUGGINGFACE: dict[str, Definition] = {
    "gpt2": gpt2_logits,
    "gpt_neo": gpt_neo_logits,
    "gpt_neox": gpt_neox_logits,
    "llama": llama_logits,
    "mistral": llama_logits,
    "qwen2": llama_logits,
    "qwen3": qwen3_logits,
    "olmo": olmo_logits,
    "olmo2": olmo2_logits,
    "phi": phi_logits,
    "phi3": phi3_logits,
    "opt": opt_logits,
    "gemma": gemma_logits,
    "gemma2": gemma2_logits,
    "gemma3_text": gemma3_logits,
}


def without_reference(foreign: ForeignModel) -> str | None:
    """A choice of the model that no definition here covers, such as `gates = 'dynamic'`; None if all are covered."""
    unknown = unknown_options(foreign.architecture, DEFINED) if foreign.format == "headstream" else []
    return ", ".join(unknown) or None


@torch.inference_mode()
def reference_logits(foreign: ForeignModel, tokens: Int[Tensor, "batch pos"]) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits by the definition of the model's format, from its file's own tensors, one layer in memory at a time.

    Raises:
        UndefinedSettingError: its file asks for something that the definition hasn't got.
    """
    kind, _, family = foreign.format.partition(" ")
    match kind:
        case "huggingface":
            return HUGGINGFACE[family](_safetensors(foreign), _json(foreign, "config.json"), tokens)
        case "gguf":
            said, tensors = read_gguf(foreign.files[0])
            return gguf_llama_logits(tensors, said, tokens)
        case "nanogpt":
            content = read_torch_file(foreign.files[0])
            return nanogpt_logits(_held(content["model"]), content["model_args"], tokens)
        case "transformer-lens":
            tensors, config = _of_transformer_lens(foreign)
            return transformer_lens_logits(tensors, config, tokens)
        case "headstream":
            said = _json(foreign, "model.json")["architecture"]  # options that came later have their defaults
            return headstream_logits(_safetensors(foreign), foreign.architecture.model_dump() | said, tokens)
    raise ValueError(kind)


def _of_transformer_lens(foreign: ForeignModel) -> tuple[FileTensors, Mapping[str, Any]]:
    weights = next(path for path in foreign.files if path.suffix != ".json")
    if weights.suffix == ".safetensors":
        return _safetensors(foreign), _json(foreign, "config.json")
    content = read_torch_file(weights)
    config = next((content[name] for name in ("cfg", "config") if name in content), None)
    state = next((content[name] for name in ("state_dict", "model_state_dict", "model") if name in content), content)
    return _held(state), _json(foreign, "config.json") if config is None else config


def _json(foreign: ForeignModel, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(next(path for path in foreign.files if path.name == name).read_bytes())
    return found


def _safetensors(foreign: ForeignModel) -> FileTensors:
    stored = open_safetensors(tuple(path for path in foreign.files if path.suffix == ".safetensors"))
    return FileTensors(frozenset(stored.header), stored.read)


def _held(tensors: Mapping[str, Tensor]) -> FileTensors:
    return FileTensors(frozenset(tensors), tensors.__getitem__)
