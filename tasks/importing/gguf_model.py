"""Models of the llama architecture in GGUF files, as llama.cpp reads them.

In these files the dimensions of queries and keys are ordered so that rotary pairs are neighbours. They are kept in that
order: `rotary_pairs = "neighbouring"` gives the same numbers.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import re
from collections.abc import Container, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headstream.models.architecture import Architecture
from headstream.models.architecture_config import MAX_CONTEXT
from headstream.tasks.errors import UserError
from headstream.tasks.importing.careful_reading import require_file
from headstream.tasks.importing.foreign_model import ForeignModel, ForeignTokenizer
from headstream.tasks.importing.gguf_codings import coding_name, decoded, require_whole
from headstream.tasks.importing.gguf_header import GgufHeader, read_header
from headstream.tasks.importing.gguf_tokenizer import bos_of, tokenizer_of
from headstream.tasks.importing.layouts import (
    FLAT,
    HEADS_BELOW_ONE_ANOTHER,
    HEADS_SIDE_BY_SIDE,
    SAME,
    TRANSPOSED,
    transposed,
)
from headstream.tasks.importing.placements import Origin, PlacedTensors, Placement, checked_model
from headstream.tasks.importing.settings import Settings, checked_architecture
from headstream.tasks.importing.stored_tensors import Stored, StoredTensors
from headstream.tasks.importing.transformer_lens_model import fraction_of

_SCALED = "scaled rotary positions"
# Keys that ask for parts that Headstream lacks: their neutral values, and the part. What isn't read otherwise is told.
_NEUTRAL: dict[str, tuple[tuple[Any, ...], str]] = {
    "expert_count": ((None, 0), "experts"),
    "rope.scaling.type": (("linear", "none"), _SCALED),  # without a factor, linear scales by 1
    "rope.scaling.attn_factor": ((None, 1), _SCALED),
    "rope.freq_base_swa": ((None,), "rotary positions that differ by layer"),
    "rope.dimension_sections": ((None,), "rotary positions of several axes"),
    "attention.causal": ((True,), "attention to later tokens"),
    "attention.scale": ((None, 0), "scale of scores but 1 / sqrt(d_head)"),
    "attention.max_alibi_bias": ((None, 0), "ALiBi"),
    "attention.clamp_kqv": ((None, 0), "clamped queries, keys and values"),
    "attn_logit_softcapping": ((None, 0), "soft-capped scores"),
    "final_logit_softcapping": ((None, 0), "soft-capped logits"),
    "logit_scale": ((None, 0, 1), "scaled logits"),
    "residual_scale": ((None, 0, 1), "scaled sublayers"),
    "embedding_scale": ((None, 0, 1), "scaled embeddings"),
    "use_parallel_residual": ((False,), "parallel sublayers in a llama"),
}
# Keys that don't affect what a model computes, or that only the tokenizer reads.
_OF_NO_CONSEQUENCE = re.compile(
    r"(general|split|quantize)\..*|rope\.scaling\.(original_context_length|finetuned)"
    r"|tokenizer\.(chat_template.*|ggml\.(model|pre|tokens|token_type|scores|merges|add_\w+|\w+_token_ids?))"
)


def open_gguf(path: Path) -> ForeignModel:
    """Open the model in a GGUF file, its weights unread.

    Raises:
        UserError: it is damaged, has parts that can't be represented, or the library that decodes it isn't installed.
    """
    header = read_header(require_file(path))
    settings = _settings(header, path)
    try:
        codings = sorted({coding_name(tensor.coding) for tensor in header.tensors.values()})
        require_whole(header, path.stat().st_size)
        tokenizer = tokenizer_of(header.metadata)
        came_with = ForeignTokenizer(tokenizer.to_str(), tokenizer.get_vocab_size(), bos_of(header.metadata))
    except ValueError as error:
        raise UserError(f"can't read the GGUF file {path}: {error}. Choose another file.") from error
    architecture = checked_architecture(path, **_fields(settings, header.tensors))
    tensors = PlacedTensors(
        path=path, stored=_stored_tensors(path, header), placements=list(_placements(architecture, header.tensors))
    )
    d_vocab = settings.whole("vocab_size", came_with.entries)
    model = checked_model(Origin("gguf llama", [path], came_with, settings.notes), tensors, architecture, d_vocab)
    dtype = " and ".join(codings)
    decoding = () if codings == ["F32"] else (f"{dtype} weights are decoded to float32",)
    return replace(model, dtype=dtype, notes=(*decoding, *model.notes))


def _settings(header: GgufHeader, path: Path) -> Settings:
    """What a file says, in which nothing asks for a part that Headstream lacks; keys of its llama without `llama.`."""
    own = {key: value for key, value in header.metadata.items() if key.startswith("llama.")}
    others = {key: value for key, value in header.metadata.items() if key not in own}
    settings = Settings(others | {key.removeprefix("llama."): value for key, value in own.items()}, path)
    settings.must_be("general.architecture", ("llama",), "place for other architectures in GGUF files")
    for name, (neutral, part) in _NEUTRAL.items():
        settings.must_be(name, neutral, part)
    factors = ("rope.scaling.factor", "rope.scale_linear")
    settings.ignore(*factors)
    if own.get("llama.rope.scaling.type") != "none":
        for name in factors:
            settings.must_be(name, (None, 0, 1), _SCALED)
    settings.ignore(*filter(_OF_NO_CONSEQUENCE.fullmatch, settings.unread))
    return settings


def _stored_tensors(path: Path, header: GgufHeader) -> StoredTensors:
    """The tensors of a file, decoded when they are read."""
    content = np.memmap(path, np.uint8, mode="r")
    return StoredTensors(
        {name: Stored(tensor.shape, "float32") for name, tensor in header.tensors.items()},
        lambda name: torch.from_numpy(decoded(content, header.tensors[name])),
        {},
    )


def _fields(settings: Settings, tensors: Container[str]) -> dict[str, Any]:
    """Fields of the architecture, from the file's metadata and from the tensors that it has."""
    n_heads, d_model = settings.whole("attention.head_count"), settings.whole("embedding_length")
    n_groups = settings.whole("attention.head_count_kv", n_heads)
    d_head, d_value = (
        settings.whole(f"attention.{each}_length", d_model // max(n_heads, 1)) for each in ("key", "value")
    )
    biases = {bias for bias, _, _ in _BIASES if f"blk.0.{bias}" in tensors}
    qkv_biases = biases == {f"attn_{part}.bias" for part in "qkv"}
    return {
        "n_layers": settings.whole("block_count"),
        "n_heads": n_heads,
        "n_key_value_heads": None if n_groups == n_heads else n_groups,
        "d_model": d_model,
        "d_head": d_head,
        "d_value": None if d_value == d_head else d_value,
        "n_ctx": min(settings.whole("context_length"), MAX_CONTEXT),
        "positions": "rotary",
        "rotary_base": settings.number("rope.freq_base", 10_000),
        "rotary_fraction": fraction_of(settings.whole("rope.dimension_count", d_head), d_head),
        "rotary_pairs": "neighbouring",
        "normalization": "rmsnorm",
        "norm_epsilon": settings.number("attention.layer_norm_rms_epsilon"),
        "feed_forward": "swiglu",
        "d_mlp": settings.whole("feed_forward_length"),
        "biases": bool(biases) and not qkv_biases,
        "qkv_biases": qkv_biases,
        "tied_embeddings": "output.weight" not in tensors,
    }


# A layer's tensors, [out, in] as in nn.Linear, and the parameters that they hold; `*` marks those that heads may share.
_MATRICES = (
    ("attn_norm.weight", SAME, "attention_norm.weight"),
    ("attn_q.weight", transposed(HEADS_SIDE_BY_SIDE), "attention.W_Q"),
    ("attn_k.weight", transposed(HEADS_SIDE_BY_SIDE), "attention.W_K*"),
    ("attn_v.weight", transposed(HEADS_SIDE_BY_SIDE), "attention.W_V*"),
    ("attn_output.weight", transposed(HEADS_BELOW_ONE_ANOTHER), "attention.W_O"),
    ("ffn_norm.weight", SAME, "feed_forward_norm.weight"),
    ("ffn_gate.weight", TRANSPOSED, "feed_forward.W_gate"),
    ("ffn_up.weight", TRANSPOSED, "feed_forward.W_in"),
    ("ffn_down.weight", TRANSPOSED, "feed_forward.W_out"),
)
_BIASES = (
    ("attn_q.bias", FLAT, "attention.b_Q"),
    ("attn_k.bias", FLAT, "attention.b_K*"),
    ("attn_v.bias", FLAT, "attention.b_V*"),
    ("attn_output.bias", SAME, "attention.b_O"),
    ("ffn_gate.bias", SAME, "feed_forward.b_gate"),
    ("ffn_up.bias", SAME, "feed_forward.b_in"),
    ("ffn_down.bias", SAME, "feed_forward.b_out"),
)


def _placements(a: Architecture, tensors: Container[str]) -> Iterator[Placement]:
    """The place of every tensor; only the biases that exist are placed."""
    shared = "" if a.n_key_value_heads is None else "_shared"
    yield Placement("token_embd.weight", SAME, ("W_E",))
    yield Placement("output_norm.weight", SAME, ("final_norm.weight",))
    if not a.tied_embeddings:
        yield Placement("output.weight", TRANSPOSED, ("W_U_free",))
    for i in range(a.n_layers):
        biases = [bias for bias in _BIASES if f"blk.{i}.{bias[0]}" in tensors]
        for tensor, layout, parameter in (*_MATRICES, *biases):
            yield Placement(f"blk.{i}.{tensor}", layout, (f"layers.{i}.{parameter.replace('*', shared)}",))
