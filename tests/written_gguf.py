"""GGUF files of the llama architecture, written from known weights row by row, as llama.cpp lays them out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter, quantize
from torch import Tensor
from written_models import D_VOCAB, llama_architecture

from headstream.models.architecture import Architecture

BYTES = ["<|endoftext|>", "Ġ", "0", "1", *"abcdefghijklmnopqrstuvwxyz"]
MERGES = ["a b", "Ġ c", "0 1"]
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def gguf_architecture(**options: Any) -> Architecture:
    return llama_architecture(**{"rotary_pairs": "neighbouring", **options})


def byte_level_metadata() -> dict[str, Any]:
    """A vocabulary of D_VOCAB tokens, one of which ends documents, and three merges."""
    tokens = [*BYTES, *("".join(merge.split()) for merge in MERGES)]
    tokens += [f"<unused {i}>" for i in range(D_VOCAB - len(tokens))]
    types = [CONTROL, *[NORMAL] * (D_VOCAB - 1)]
    return {"model": "gpt2", "pre": "smollm", "tokens": tokens, "token_type": types, "merges": MERGES}


def gguf_tensors(a: Architecture, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors by llama.cpp's names, [out, in]; of queries and keys, each head's rows in the order of rotary pairs."""
    shared = "_shared" if a.n_key_value_heads else ""
    tensors = {"token_embd.weight": weights["W_E"], "output_norm.weight": weights["final_norm.weight"]}
    if not a.tied_embeddings:
        tensors["output.weight"] = weights["W_U_free"].T
    for i in range(a.n_layers):
        own = {name.removeprefix(f"layers.{i}."): tensor for name, tensor in weights.items()}
        block = {"attn_norm.weight": own["attention_norm.weight"], "ffn_norm.weight": own["feed_forward_norm.weight"]}
        for part, name in (("q", "Q"), ("k", f"K{shared}"), ("v", f"V{shared}")):
            W = own[f"attention.W_{name}"]
            rows = [(head, place) for head in range(W.shape[0]) for place in range(W.shape[2])]
            block[f"attn_{part}.weight"] = torch.stack([W[head, :, place] for head, place in rows])
            if a.biases or a.qkv_biases:
                block[f"attn_{part}.bias"] = torch.stack([own[f"attention.b_{name}"][row] for row in rows])
        W_O = own["attention.W_O"]
        rows = [(head, place) for head in range(W_O.shape[0]) for place in range(W_O.shape[1])]
        block["attn_output.weight"] = torch.stack([W_O[row] for row in rows], dim=1)
        for part, name in (("gate", "gate"), ("up", "in"), ("down", "out")):
            block[f"ffn_{part}.weight"] = own[f"feed_forward.W_{name}"].T
        if a.biases:
            block["attn_output.bias"] = own["attention.b_O"]
            block |= {f"ffn_{part}.bias": own[f"feed_forward.b_{n}"] for part, n in (("gate", "gate"), ("up", "in"))}
            block["ffn_down.bias"] = own["feed_forward.b_out"]
        tensors |= {f"blk.{i}.{name}": tensor for name, tensor in block.items()}
    return tensors


def gguf_metadata(a: Architecture) -> dict[str, Any]:
    return {
        "block_count": a.n_layers,
        "context_length": a.n_ctx,
        "embedding_length": a.d_model,
        "feed_forward_length": a.mlp_width,
        "attention.head_count": a.n_heads,
        "attention.head_count_kv": a.n_key_value_heads or a.n_heads,
        "attention.key_length": a.head_width,
        "attention.value_length": a.value_width,
        "attention.layer_norm_rms_epsilon": a.norm_epsilon,
        "rope.dimension_count": int(a.head_width * a.rotary_fraction),
        "rope.freq_base": a.rotary_base,
        "vocab_size": D_VOCAB,
    }


def write_gguf(
    path: Path,
    a: Architecture,
    tensors: Mapping[str, Tensor],
    coding: GGMLQuantizationType = GGMLQuantizationType.F32,
    metadata: Mapping[str, Any] | None = None,
    tokenizer: Mapping[str, Any] | None = None,
    architecture: str = "llama",
) -> Path:
    """Write a file whose matrices are coded in some way, with changes to what it says; None takes an entry out."""
    writer = GGUFWriter(path, architecture)
    said = {f"llama.{key}": value for key, value in (gguf_metadata(a) | dict(metadata or {})).items()}
    said |= {f"tokenizer.ggml.{key}": value for key, value in (tokenizer or byte_level_metadata()).items()}
    for key, value in said.items():
        if value is not None:
            writer.add_key_value(key, value, *_kind(value))
    for name, tensor in tensors.items():
        numbers = tensor.contiguous().numpy()
        own = coding if numbers.ndim == 2 else GGMLQuantizationType.F32
        writer.add_tensor(name, quantize(numbers, own), raw_dtype=own)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _kind(value: Any) -> tuple[GGUFValueType, ...]:
    if isinstance(value, list):
        return GGUFValueType.ARRAY, _kind(value[0])[0]
    kinds = {
        bool: GGUFValueType.BOOL,
        int: GGUFValueType.UINT32,
        float: GGUFValueType.FLOAT32,
        str: GGUFValueType.STRING,
    }
    return (kinds[type(value)],)
