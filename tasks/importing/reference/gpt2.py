"""GPT-2 as Hugging Face stores it, and nanoGPT, which stores matrices transposed.

Sources: Radford et al. 2019; https://github.com/karpathy/nanoGPT/blob/master/model.py
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float64, Int
from torch import Tensor

from headstream.tasks.importing.reference.attended_values import ScoreForm, attended
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.maths import REFERENCE_ACTIVATIONS, layer_norm, read_out
from headstream.tasks.importing.reference.said_settings import given


@dataclass(frozen=True)
class _Form:
    """What tells one model of this kind from another."""

    unembedding: str  # its tensor
    n_heads: int
    n_layers: int
    activation: str
    epsilon: float
    transposed: bool  # whether matrices are stored as a `Linear` has them
    scaled: bool = True
    scaled_by_layer: bool = False


def gpt2_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of a `GPT2LMHeadModel`, whose `Conv1D` is x @ W + b."""
    tied = given(config, "tie_word_embeddings", True)
    form = _Form(
        unembedding="wte.weight" if tied else "lm_head.weight",
        n_heads=given(config, "num_attention_heads", config["n_head"]),
        n_layers=given(config, "num_hidden_layers", config["n_layer"]),
        activation=given(config, "activation_function", "gelu_new"),
        epsilon=given(config, "layer_norm_epsilon", 1e-5),
        transposed=False,
        scaled=given(config, "scale_attn_weights", True),
        scaled_by_layer=given(config, "scale_attn_by_inverse_layer_idx", False),
    )
    return _logits(tensors, tokens, form)


def nanogpt_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of nanoGPT's `GPT`; `config` is its `model_args`.

    Versions that have the setting `bias` have the exact GELU, older ones GPT-2's.
    """
    embedding = "transformer.wte.weight"  # with a prefix after compiling or training on several devices
    plain = tensors.without(next(name for name in tensors.names if name.endswith(embedding)).removesuffix(embedding))
    form = _Form(
        unembedding="lm_head.weight" if "lm_head.weight" in plain.names else "wte.weight",
        n_heads=config["n_head"],
        n_layers=config["n_layer"],
        activation="gelu" if "bias" in config else "gelu_new",
        epsilon=1e-5,
        transposed=True,
    )
    return _logits(plain, tokens, form)


def _logits(tensors: FileTensors, tokens: Tensor, form: _Form) -> Tensor:
    tensors = tensors.without("transformer.")

    def linear(x: Tensor, name: str) -> Tensor:
        weight, bias = tensors[f"{name}.weight"], tensors.get(f"{name}.bias")
        out = x @ (weight.T if form.transposed else weight)
        return out if bias is None else out + bias

    def norm(x: Tensor, name: str) -> Tensor:
        return layer_norm(x, form.epsilon, tensors[f"{name}.weight"], tensors.get(f"{name}.bias"))

    x = tensors.as_stored("wte.weight")[tokens].double() + tensors["wpe.weight"][: tokens.shape[1]]
    for i in range(form.n_layers):
        joined = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn")
        q, k, v = (part.unflatten(-1, (form.n_heads, -1)) for part in joined.chunk(3, dim=-1))
        scale = q.shape[-1] ** -0.5 if form.scaled else 1.0
        mixed = attended(q, k, v, ScoreForm(scale / (i + 1) if form.scaled_by_layer else scale))
        x = x + linear(mixed.flatten(2), f"h.{i}.attn.c_proj")
        hidden = REFERENCE_ACTIVATIONS[form.activation](linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"))
        x = x + linear(hidden, f"h.{i}.mlp.c_proj")
    return read_out(norm(x, "ln_f"), tensors.as_stored(form.unembedding))
