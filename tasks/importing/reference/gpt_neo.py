"""GPT-Neo as Hugging Face stores it. Source: https://github.com/EleutherAI/gpt-neo, whose scores aren't scaled."""

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float64, Int
from torch import Tensor

from headstream.tasks.importing.reference.attended_values import ScoreForm, Visible, attended
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.maths import REFERENCE_ACTIVATIONS, layer_norm, read_out


def gpt_neo_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of a `GPTNeoForCausalLM`."""
    epsilon, n_heads = config.get("layer_norm_epsilon", 1e-5), config["num_heads"]
    activation = REFERENCE_ACTIVATIONS[config.get("activation_function", "gelu_new")]
    kinds = list(config.get("attention_layers") or [])
    for pattern, times in [] if kinds else config.get("attention_types", [[["global", "local"], 12]]):
        kinds.extend(list(pattern) * times)
    tensors = tensors.without("transformer.")

    def norm(x: Tensor, name: str) -> Tensor:
        return layer_norm(x, epsilon, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    x = tensors.as_stored("wte.weight")[tokens].double() + tensors["wpe.weight"][: tokens.shape[1]]
    for i in range(config["num_layers"]):
        attention, read = f"h.{i}.attn.attention", norm(x, f"h.{i}.ln_1")
        q, k, v = (
            (read @ tensors[f"{attention}.{which}_proj.weight"].T).unflatten(-1, (n_heads, -1)) for which in "qkv"
        )
        window = config.get("window_size", 256) if kinds[i] == "local" else None
        mixed = attended(q, k, v, ScoreForm(1.0), Visible(window))
        x = x + linear(mixed.flatten(2), f"{attention}.out_proj")
        hidden = activation(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"))
        x = x + linear(hidden, f"h.{i}.mlp.c_proj")
    tied = config.get("tie_word_embeddings", True)
    return read_out(norm(x, "ln_f"), tensors.as_stored("wte.weight" if tied else "lm_head.weight"))
