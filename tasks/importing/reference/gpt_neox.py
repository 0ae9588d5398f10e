"""GPT-NeoX, Pythia included, as Hugging Face stores it. Source: Black et al. 2022, GPT-NeoX-20B, section 2."""

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float64, Int
from torch import Tensor

from headstream.tasks.importing.reference.attended_values import ScoreForm, attended
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.maths import REFERENCE_ACTIVATIONS, layer_norm, read_out, rotated
from headstream.tasks.importing.reference.said_settings import given, rotary_entries


def gpt_neox_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of a `GPTNeoXForCausalLM`."""
    n_heads = config["num_attention_heads"]
    d_head = config["hidden_size"] // n_heads
    rotary = rotary_entries(config)  # a `rope_theta` beside `rotary_emb_base` decides nothing
    fraction = given(rotary, "partial_rotary_factor", given(config, "rotary_pct", 0.25))
    base = given(rotary, "rope_theta", given(config, "rotary_emb_base", 10_000.0))
    activation = REFERENCE_ACTIVATIONS[given(config, "hidden_act", "gelu")]
    epsilon = given(config, "layer_norm_eps", 1e-5)
    parallel = given(config, "use_parallel_residual", True)
    tensors = tensors.without("gpt_neox.")

    def linear(x: Tensor, name: str) -> Tensor:
        bias = tensors.get(f"{name}.bias")
        out = x @ tensors[f"{name}.weight"].T
        return out if bias is None else out + bias

    def norm(x: Tensor, name: str) -> Tensor:
        return layer_norm(x, epsilon, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    x = tensors.as_stored("embed_in.weight")[tokens].double()
    for i in range(config["num_hidden_layers"]):
        layer = f"layers.{i}"
        fused = linear(norm(x, f"{layer}.input_layernorm"), f"{layer}.attention.query_key_value")
        q, k, v = fused.unflatten(-1, (n_heads, 3 * d_head)).split(d_head, dim=-1)
        q, k = (rotated(part, base, int(d_head * fraction), half_split=True) for part in (q, k))
        mixed = attended(q, k, v, ScoreForm(d_head**-0.5))
        attention_out = linear(mixed.flatten(2), f"{layer}.attention.dense")
        read = norm(x if parallel else x + attention_out, f"{layer}.post_attention_layernorm")
        hidden = activation(linear(read, f"{layer}.mlp.dense_h_to_4h"))
        x = x + attention_out + linear(hidden, f"{layer}.mlp.dense_4h_to_h")
    tied = given(config, "tie_word_embeddings", False)
    unembedding = "embed_in.weight" if tied else "embed_out.weight"
    return read_out(norm(x, "final_layer_norm"), tensors.as_stored(unembedding))
