"""Phi-3 as Hugging Face stores it. Source: Abdin et al. 2024, Phi-3 Technical Report; Microsoft's modeling_phi3.py."""

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float64, Int
from torch import Tensor

from headstream.tasks.importing.reference.attended_values import ScoreForm, Visible, attended
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.maths import REFERENCE_ACTIVATIONS, read_out, rms_norm, turned
from headstream.tasks.importing.reference.rope import rope_rates


def phi3_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of a `Phi3ForCausalLM`."""
    n_heads, epsilon = config["num_attention_heads"], config.get("rms_norm_eps", 1e-5)
    n_groups, d_head = config.get("num_key_value_heads") or n_heads, config.get("head_dim")
    d_head = d_head or config["hidden_size"] // n_heads
    activation = REFERENCE_ACTIVATIONS[config.get("hidden_act", "silu")]
    entries = config.get("rope_scaling") or config.get("rope_parameters") or {}
    fraction = entries.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0
    rates = rope_rates(config, int(d_head * fraction))
    tensors = tensors.without("model.")
    x = tensors.as_stored("embed_tokens.weight")[tokens].double()
    for i in range(config["num_hidden_layers"]):
        layer = tensors.within(f"layers.{i}.")
        fused = rms_norm(x, epsilon, layer["input_layernorm.weight"]) @ layer["self_attn.qkv_proj.weight"].T
        sizes = [n_heads * d_head, n_groups * d_head, n_groups * d_head]
        q, k, v = (part.unflatten(-1, (-1, d_head)) for part in fused.split(sizes, dim=-1))
        q, k = (turned(part, rates, half_split=True) for part in (q, k))
        mixed = attended(q, k, v, ScoreForm(d_head**-0.5), Visible(config.get("sliding_window")))
        x = x + mixed.flatten(2) @ layer["self_attn.o_proj.weight"].T
        fused = rms_norm(x, epsilon, layer["post_attention_layernorm.weight"]) @ layer["mlp.gate_up_proj.weight"].T
        gate, up = fused.chunk(2, dim=-1)
        x = x + (activation(gate) * up) @ layer["mlp.down_proj.weight"].T
    tied = config.get("tie_word_embeddings", False)
    unembedding = tensors.as_stored("embed_tokens.weight" if tied else "lm_head.weight")
    return read_out(rms_norm(x, epsilon, tensors["norm.weight"]), unembedding)
