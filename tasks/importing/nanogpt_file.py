"""A checkpoint of nanoGPT: GPT-2's tensors, whose matrices are nn.Linear's [out, in], beside `model_args`.

Source: https://github.com/karpathy/nanoGPT, model.py and train.py.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from headstream.tasks.errors import UserError
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.foreign_tokenizer import find_tokenizer
from headstream.tasks.importing.gpt2_family import GPT2_BUFFERS, gpt2_placements
from headstream.tasks.importing.placements import Origin, PlacedTensors, checked_model
from headstream.tasks.importing.settings import Settings, checked_architecture
from headstream.tasks.importing.stored_tensors import StoredTensors, held_tensors

_EMBEDDING, _UNEMBEDDING = "transformer.wte.weight", "lm_head.weight"
OF_GPT2, PADDED = 50_257, 50_304  # tokens


def open_nanogpt(path: Path, content: Mapping[str, Any]) -> ForeignModel:
    """Open the model in a checkpoint whose content has been read.

    Raises:
        UserError: it contradicts itself, or has parts that Headstream can't represent.
    """
    stored = held_tensors(path, content.get("model"), _progress(content)).renamed(_plain_name)
    given = content["model_args"]
    if not isinstance(given, dict):
        raise UserError(f"model_args of {path} must be a dictionary, got a {type(given).__name__}. Save it again.")
    settings = Settings(given, path)
    settings.ignore("dropout", "flash")
    d_model = settings.whole("n_embd")
    recent = settings.says("bias")  # versions with this setting have the exact GELU
    biases = settings.flag("bias", True)
    architecture = checked_architecture(
        path,
        n_layers=settings.whole("n_layer"),
        n_heads=settings.whole("n_head"),
        d_model=d_model,
        d_mlp=4 * d_model,
        n_ctx=settings.whole("block_size"),
        positions="learned",
        normalization="layernorm",
        norm_epsilon=1e-5,
        feed_forward="gelu" if recent else "gelu_tanh",
        biases=biases,
        tied_embeddings=_tied(stored),
    )
    d_vocab = settings.whole("vocab_size")
    tokenizer, tokenizer_files, notes = find_tokenizer(path.parent, {})
    if recent:
        notes.append("the file doesn't say which GELU it was trained with: the exact one of today's nanoGPT is assumed")
    if tokenizer is None and d_vocab in (OF_GPT2, PADDED):
        notes.append(f"{d_vocab:,} is the vocabulary of GPT-2: put its tokenizer.json beside the file")
    placed = PlacedTensors(
        path=path,
        stored=stored,
        placements=gpt2_placements(architecture, linear=True, biases=biases),
        buffers=GPT2_BUFFERS,
        copies={_UNEMBEDDING: _EMBEDDING} if architecture.tied_embeddings else {},
    )
    files, notes = [path, *tokenizer_files], [*notes, *settings.notes]
    return checked_model(Origin("nanogpt", files, tokenizer, notes), placed, architecture, d_vocab)


def _plain_name(tensor: str) -> str:
    """A tensor's name without the prefixes that compiling and training on several devices add."""
    return re.sub(r"^(_orig_mod\.|module\.)+", "", tensor)


def _tied(stored: StoredTensors) -> bool:
    """True if the unembedding is the embedding, as in an unmodified nanoGPT."""
    if not {_EMBEDDING, _UNEMBEDDING} <= stored.header.keys():
        return True
    W_E, W_U = stored.read(_EMBEDDING), stored.read(_UNEMBEDDING)
    return W_U.data_ptr() == W_E.data_ptr() or torch.equal(W_U, W_E)


def _progress(content: Mapping[str, Any]) -> dict[str, str]:
    """The training steps so far, and the tokens read by then, as far as the file says."""
    step, training = content.get("iter_num"), content.get("config")
    if not isinstance(step, int):
        return {}
    factors = ("gradient_accumulation_steps", "batch_size", "block_size")
    said = [training[name] for name in factors if name in training] if isinstance(training, dict) else []
    sizes = [size for size in said if isinstance(size, int)]
    return {"step": str(step)} | ({"tokens": str(step * math.prod(sizes))} if len(sizes) == len(factors) else {})
