"""Gemma, Gemma 2 and Gemma 3's text models as Hugging Face stores them.

Sources: Gemma Team 2024, Gemma, section 2; Gemma Team 2024, Gemma 2, section 2; Gemma Team 2025, Gemma 3, section 2;
Google's gemma_pytorch.
"""

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float64, Int
from torch import Tensor

from headstream.tasks.importing.reference.attended_values import ScoreForm, Visible, attended
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.maths import (
    REFERENCE_ACTIVATIONS,
    gelu_tanh,
    kept_below,
    rates_of,
    read_out,
    rms_norm,
    turned,
)
from headstream.tasks.importing.reference.rope import rope_rates


def gemma_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of a `GemmaForCausalLM`, whose `gelu` is the approximation by tanh."""
    d_head, epsilon = config.get("head_dim") or 256, config.get("rms_norm_eps", 1e-6)
    named = config.get("hidden_act", "gelu_pytorch_tanh")
    activation = gelu_tanh if named == "gelu" else REFERENCE_ACTIVATIONS[named]
    tensors, rates = tensors.without("model."), rope_rates(config, d_head)
    x = tensors.as_stored("embed_tokens.weight")[tokens].double() * config["hidden_size"] ** 0.5
    for i in range(config["num_hidden_layers"]):
        layer = tensors.within(f"layers.{i}.")
        read = rms_norm(x, epsilon, 1 + layer["input_layernorm.weight"])
        q, k, v = (_linear(layer, f"self_attn.{which}_proj", read).unflatten(-1, (-1, d_head)) for which in "qkv")
        q, k = (turned(part, rates, half_split=True) for part in (q, k))
        x = x + _linear(layer, "self_attn.o_proj", attended(q, k, v, ScoreForm(d_head**-0.5)).flatten(2))
        read = rms_norm(x, epsilon, 1 + layer["post_attention_layernorm.weight"])
        hidden = activation(_linear(layer, "mlp.gate_proj", read)) * _linear(layer, "mlp.up_proj", read)
        x = x + _linear(layer, "mlp.down_proj", hidden)
    tied = config.get("tie_word_embeddings", True)
    unembedding = tensors.as_stored("embed_tokens.weight" if tied else "lm_head.weight")
    return read_out(rms_norm(x, epsilon, 1 + tensors["norm.weight"]), unembedding)


def _linear(layer: FileTensors, name: str, x: Tensor) -> Tensor:
    bias = layer.get(f"{name}.bias")
    out = x @ layer[f"{name}.weight"].T
    return out if bias is None else out + bias


def gemma2_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of a `Gemma2ForCausalLM`."""
    rates = rope_rates(config, config.get("head_dim") or 256)
    caps = (config.get("attn_logit_softcapping", 50.0), config.get("final_logit_softcapping", 30.0))
    return _logits(
        tensors, config, tokens, _kinds(config, 2), {"full_attention": rates, "sliding_attention": rates}, caps
    )


def gemma3_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of a `Gemma3ForCausalLM`, a text model."""
    d_head = config.get("head_dim") or 256
    both = config.get("rope_parameters") or {}
    of_windows, of_full = (both.get(f"{kind}_attention") or {} for kind in ("sliding", "full"))
    base = of_windows.get("rope_theta") or config.get("rope_local_base_freq") or 10_000.0
    of_full = {"rope_theta": config.get("rope_theta") or 1e6, **of_full, **(config.get("rope_scaling") or {})}
    beside = {name: config[name] for name in ("max_position_embeddings",) if name in config}
    rates = {
        "full_attention": rope_rates(beside | {"rope_parameters": of_full}, d_head),
        "sliding_attention": rates_of(base, d_head),
    }
    every = config.get("sliding_window_pattern") or 6
    return _logits(tensors, config, tokens, _kinds(config, every), rates, (None, config.get("final_logit_softcapping")))


def _kinds(config: Mapping[str, Any], every: int) -> list[str]:
    """Of each layer, whether it sees all keys before or those of a window alone."""
    by_place = (
        "full_attention" if (i + 1) % every == 0 else "sliding_attention" for i in range(config["num_hidden_layers"])
    )
    return config.get("layer_types") or list(by_place)


def _logits(
    tensors: FileTensors,
    config: Mapping[str, Any],
    tokens: Tensor,
    kinds: list[str],
    rates: Mapping[str, list[float]],
    caps: tuple[float | None, float | None],
) -> Tensor:
    """Logits, given the kind of each layer, the rates of rotary positions by kind, and bounds of scores and logits."""
    d_head, epsilon = config.get("head_dim") or 256, config.get("rms_norm_eps", 1e-6)
    scale = (config.get("query_pre_attn_scalar") or 256) ** -0.5
    activation = REFERENCE_ACTIVATIONS[config.get("hidden_activation") or "gelu_pytorch_tanh"]
    tensors = tensors.without("model.")

    def norm(x: Tensor, name: str) -> Tensor:
        return rms_norm(x, epsilon, 1 + tensors[f"{name}.weight"])

    def linear(x: Tensor, name: str) -> Tensor:
        return _linear(tensors, name, x)

    x = tensors.as_stored("embed_tokens.weight")[tokens].double() * config["hidden_size"] ** 0.5
    for i, kind in enumerate(kinds):
        layer, attention = f"layers.{i}", f"layers.{i}.self_attn"
        read = norm(x, f"{layer}.input_layernorm")
        q, k, v = (linear(read, f"{attention}.{which}_proj").unflatten(-1, (-1, d_head)) for which in "qkv")
        if f"{attention}.q_norm.weight" in tensors.names:  # of Gemma 3
            q, k = norm(q, f"{attention}.q_norm"), norm(k, f"{attention}.k_norm")
        q, k = (turned(part, rates[kind], half_split=True) for part in (q, k))
        window = config.get("sliding_window", 4096) if kind == "sliding_attention" else None
        mixed = attended(q, k, v, ScoreForm(scale, caps[0]), Visible(window))
        x = x + norm(linear(mixed.flatten(2), f"{attention}.o_proj"), f"{layer}.post_attention_layernorm")
        read = norm(x, f"{layer}.pre_feedforward_layernorm")
        hidden = activation(linear(read, f"{layer}.mlp.gate_proj")) * linear(read, f"{layer}.mlp.up_proj")
        x = x + norm(linear(hidden, f"{layer}.mlp.down_proj"), f"{layer}.post_feedforward_layernorm")
    tied = config.get("tie_word_embeddings", True)
    unembedding = tensors.as_stored("embed_tokens.weight" if tied else "lm_head.weight")
    logits = read_out(norm(x, "norm"), unembedding)
    return logits if caps[1] is None else kept_below(logits, caps[1])
