"""Phi as Hugging Face stores it. Source: Li et al. 2023, Textbooks Are All You Need II; Microsoft's modeling_phi.py."""

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float64, Int
from torch import Tensor

from headstream.tasks.importing.reference.attended_values import ScoreForm, attended
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.maths import REFERENCE_ACTIVATIONS, layer_norm, read_out, turned
from headstream.tasks.importing.reference.rope import rope_rates


def phi_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of a `PhiForCausalLM`."""
    d_head, epsilon = config["hidden_size"] // config["num_attention_heads"], config.get("layer_norm_eps", 1e-5)
    activation = REFERENCE_ACTIVATIONS[config.get("hidden_act", "gelu_new")]
    entries = config.get("rope_scaling") or config.get("rope_parameters") or {}
    fraction = entries.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 0.5
    rates = rope_rates(config, int(d_head * fraction))
    tensors = tensors.without("model.")

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def norm(x: Tensor, name: str) -> Tensor:
        return layer_norm(x, epsilon, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    x = tensors.as_stored("embed_tokens.weight")[tokens].double()
    for i in range(config["num_hidden_layers"]):
        layer = f"layers.{i}"
        read = norm(x, f"{layer}.input_layernorm")
        q, k, v = (linear(read, f"{layer}.self_attn.{which}_proj").unflatten(-1, (-1, d_head)) for which in "qkv")
        q, k = (turned(part, rates, half_split=True) for part in (q, k))
        mixed = attended(q, k, v, ScoreForm(d_head**-0.5))
        hidden = activation(linear(read, f"{layer}.mlp.fc1"))
        x = x + linear(mixed.flatten(2), f"{layer}.self_attn.dense") + linear(hidden, f"{layer}.mlp.fc2")
    tied = config.get("tie_word_embeddings", False)
    unembedding = tensors.as_stored("embed_tokens.weight" if tied else "lm_head.weight")
    return read_out(norm(x, "final_layernorm"), unembedding, tensors["lm_head.bias"])
