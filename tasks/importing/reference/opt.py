"""OPT as Hugging Face stores it. Source: Zhang et al. 2022, OPT, section 2; fairseq's learned positional embedding."""

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float64, Int
from torch import Tensor

from headstream.tasks.importing.reference.attended_values import ScoreForm, attended
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.maths import REFERENCE_ACTIVATIONS, layer_norm, read_out


def opt_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of an `OPTForCausalLM` with norms before sublayers."""
    n_heads, activation = (
        config["num_attention_heads"],
        REFERENCE_ACTIVATIONS[config.get("activation_function", "relu")],
    )
    tensors = tensors.without("model.").without("decoder.")

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def norm(x: Tensor, name: str) -> Tensor:
        return layer_norm(x, 1e-5, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    n = tokens.shape[1]
    x = tensors.as_stored("embed_tokens.weight")[tokens].double() + tensors["embed_positions.weight"][2 : 2 + n]
    for i in range(config["num_hidden_layers"]):
        layer = f"layers.{i}"
        read = norm(x, f"{layer}.self_attn_layer_norm")
        q, k, v = (linear(read, f"{layer}.self_attn.{which}_proj").unflatten(-1, (n_heads, -1)) for which in "qkv")
        mixed = attended(q, k, v, ScoreForm(q.shape[-1] ** -0.5))
        x = x + linear(mixed.flatten(2), f"{layer}.self_attn.out_proj")
        hidden = activation(linear(norm(x, f"{layer}.final_layer_norm"), f"{layer}.fc1"))
        x = x + linear(hidden, f"{layer}.fc2")
    tied = config.get("tie_word_embeddings", True)
    unembedding = tensors.as_stored("embed_tokens.weight" if tied else "lm_head.weight")
    return read_out(norm(x, "final_layer_norm"), unembedding)
