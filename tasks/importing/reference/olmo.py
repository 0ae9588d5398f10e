"""OLMo and OLMo 2 as Hugging Face stores them.

Sources: Groeneveld et al. 2024, OLMo, section 2.1; OLMo Team 2024, 2 OLMo 2 Furious, section 3.
"""

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float64, Int
from torch import Tensor

from headstream.tasks.importing.reference.attended_values import ScoreForm, attended
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.maths import REFERENCE_ACTIVATIONS, layer_norm, read_out, rms_norm, turned
from headstream.tasks.importing.reference.rope import rope_rates


def olmo_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of an `OlmoForCausalLM`, whose norms have no weights and come before sublayers."""
    tensors = tensors.without("model.")
    x = tensors.as_stored("embed_tokens.weight")[tokens].double()
    for i in range(config["num_hidden_layers"]):
        layer = tensors.within(f"layers.{i}.")
        q, k, v = (_linear(layer, f"self_attn.{which}_proj", layer_norm(x, 1e-5)) for which in "qkv")
        x = x + _attention(layer, config, q, k, v)
        x = x + _feed_forward(layer, config, layer_norm(x, 1e-5))
    return _logits(tensors, config, layer_norm(x, 1e-5))


def olmo2_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of an `Olmo2ForCausalLM`, whose norms are of what sublayers write, and of all queries or keys at once."""
    tensors, epsilon = tensors.without("model."), config.get("rms_norm_eps", 1e-5)
    x = tensors.as_stored("embed_tokens.weight")[tokens].double()
    for i in range(config["num_hidden_layers"]):
        layer = tensors.within(f"layers.{i}.")
        q, k, v = (_linear(layer, f"self_attn.{which}_proj", x) for which in "qkv")
        q = rms_norm(q, epsilon, layer["self_attn.q_norm.weight"])
        k = rms_norm(k, epsilon, layer["self_attn.k_norm.weight"])
        x = x + rms_norm(_attention(layer, config, q, k, v), epsilon, layer["post_attention_layernorm.weight"])
        x = x + rms_norm(_feed_forward(layer, config, x), epsilon, layer["post_feedforward_layernorm.weight"])
    return _logits(tensors, config, rms_norm(x, epsilon, tensors["norm.weight"]))


def _attention(layer: FileTensors, config: Mapping[str, Any], q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    d_head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    q, k, v = (part.unflatten(-1, (-1, d_head)) for part in (q, k, v))
    q, k = (turned(part, rope_rates(config, d_head), half_split=True) for part in (q, k))
    return _linear(layer, "self_attn.o_proj", attended(q, k, v, ScoreForm(d_head**-0.5)).flatten(2))


def _feed_forward(layer: FileTensors, config: Mapping[str, Any], x: Tensor) -> Tensor:
    gate = REFERENCE_ACTIVATIONS[config.get("hidden_act", "silu")](_linear(layer, "mlp.gate_proj", x))
    return _linear(layer, "mlp.down_proj", gate * _linear(layer, "mlp.up_proj", x))


def _linear(layer: FileTensors, name: str, x: Tensor) -> Tensor:
    bias = layer.get(f"{name}.bias")
    out = x @ layer[f"{name}.weight"].T
    return out if bias is None else out + bias


def _logits(tensors: FileTensors, config: Mapping[str, Any], final: Tensor) -> Tensor:
    tied = config.get("tie_word_embeddings", False)
    return read_out(final, tensors.as_stored("embed_tokens.weight" if tied else "lm_head.weight"))
