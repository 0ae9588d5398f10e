"""Qwen3 as Hugging Face stores it. Source: Yang et al. 2025, Qwen3 Technical Report, section 2."""

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float64, Int
from torch import Tensor

from headstream.tasks.importing.reference.attended_values import ScoreForm, Visible, attended
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.maths import REFERENCE_ACTIVATIONS, read_out, rms_norm, turned
from headstream.tasks.importing.reference.rope import rope_rates


def qwen3_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of a `Qwen3ForCausalLM`."""
    n_groups = config.get("num_key_value_heads", 32) or config["num_attention_heads"]
    d_head, epsilon = config.get("head_dim", 128), config.get("rms_norm_eps", 1e-6)
    activation = REFERENCE_ACTIVATIONS[config.get("hidden_act", "silu")]
    tensors = tensors.without("model.")

    def linear(x: Tensor, name: str) -> Tensor:
        bias = tensors[f"{name}.bias"] if config.get("attention_bias") and ".self_attn." in name else 0
        return x @ tensors[f"{name}.weight"].T + bias

    def norm(x: Tensor, name: str) -> Tensor:
        return rms_norm(x, epsilon, tensors[f"{name}.weight"])

    x = tensors.as_stored("embed_tokens.weight")[tokens].double()
    for i in range(config["num_hidden_layers"]):
        layer = f"layers.{i}"
        read, attention = norm(x, f"{layer}.input_layernorm"), f"{layer}.self_attn"
        q = linear(read, f"{attention}.q_proj").unflatten(-1, (config["num_attention_heads"], d_head))
        k, v = (linear(read, f"{attention}.{which}_proj").unflatten(-1, (n_groups, d_head)) for which in "kv")
        q, k = norm(q, f"{attention}.q_norm"), norm(k, f"{attention}.k_norm")
        q, k = (turned(part, rope_rates(config, d_head), half_split=True) for part in (q, k))
        mixed = attended(q, k, v, ScoreForm(d_head**-0.5), Visible(_window(config, i)))
        x = x + linear(mixed.flatten(2), f"{attention}.o_proj")
        read = norm(x, f"{layer}.post_attention_layernorm")
        hidden = activation(linear(read, f"{layer}.mlp.gate_proj")) * linear(read, f"{layer}.mlp.up_proj")
        x = x + linear(hidden, f"{layer}.mlp.down_proj")
    tied = config.get("tie_word_embeddings", False)
    return read_out(norm(x, "norm"), tensors.as_stored("embed_tokens.weight" if tied else "lm_head.weight"))


def _window(config: Mapping[str, Any], layer: int) -> int | None:
    """The number of keys that a layer's queries see; None for all."""
    if not config.get("use_sliding_window"):
        return None
    kinds = config.get("layer_types")
    windowed = kinds[layer] == "sliding_attention" if kinds else layer >= config.get("max_window_layers", 28)
    return config.get("sliding_window", 4096) if windowed else None
