"""Llama, Mistral and Qwen2 as Hugging Face stores them, and Llama as GGUF does.

Sources: Touvron et al. 2023, LLaMA, section 2.2; Jiang et al. 2023, Mistral 7B, section 2; Shazeer 2020, GLU Variants;
for GGUF https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float64, Int
from torch import Tensor

from headstream.tasks.importing.reference.attended_values import ScoreForm, Visible, attended
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.maths import REFERENCE_ACTIVATIONS, rates_of, read_out, rms_norm, silu, turned
from headstream.tasks.importing.reference.rope import rope_rates
from headstream.tasks.importing.reference.said_settings import given, require_defined


def llama_logits(
    tensors: FileTensors, config: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of a `LlamaForCausalLM`, `MistralForCausalLM` or `Qwen2ForCausalLM`."""
    n_heads = config["num_attention_heads"]
    d_head = given(config, "head_dim", config["hidden_size"] // n_heads)
    unsaid_groups = {"mistral": 8, "qwen2": 32}.get(config["model_type"])
    form = _Form(
        n_layers=config["num_hidden_layers"],
        n_heads=n_heads,
        n_groups=config.get("num_key_value_heads", unsaid_groups) or n_heads,
        rates=rope_rates(config, d_head),
        half_split=True,
        epsilon=given(config, "rms_norm_eps", 1e-6),
        activation=REFERENCE_ACTIVATIONS[given(config, "hidden_act", "silu")],
        windows=_windows(config),
    )
    names = {
        "embedding": "embed_tokens",
        "final_norm": "norm",
        "unembedding": "embed_tokens" if given(config, "tie_word_embeddings", False) else "lm_head",
        "layer": "layers.{}",
        "attention_norm": "input_layernorm",
        **{part: f"self_attn.{part}_proj" for part in "qkvo"},
        "feed_forward_norm": "post_attention_layernorm",
        **{part: f"mlp.{part}_proj" for part in ("gate", "up", "down")},
    }
    return _logits(tensors.without("model."), names, form, tokens)


def gguf_llama_logits(
    tensors: FileTensors, metadata: Mapping[str, Any], tokens: Int[Tensor, "batch pos"]
) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits of a llama in a GGUF file, in llama.cpp's order of dimensions: rotary pairs are neighbours."""
    said = {key.removeprefix("llama."): value for key, value in metadata.items() if key.startswith("llama.")}
    require_defined(said, _DEFINED_IN_GGUF)
    if given(said, "rope.scaling.type", "linear") != "none":  # as it is in a file that doesn't say
        require_defined(said, dict.fromkeys(("rope.scaling.factor", "rope.scale_linear"), (0, 1)))
    n_heads = said["attention.head_count"]
    d_head = said.get("attention.key_length", said["embedding_length"] // n_heads)
    form = _Form(
        n_layers=said["block_count"],
        n_heads=n_heads,
        n_groups=said.get("attention.head_count_kv", n_heads),
        rates=rates_of(said.get("rope.freq_base", 10_000.0), said.get("rope.dimension_count", d_head)),
        half_split=False,
        epsilon=said["attention.layer_norm_rms_epsilon"],
        activation=silu,
        windows=[None] * said["block_count"],
    )
    names = {
        "embedding": "token_embd",
        "final_norm": "output_norm",
        "unembedding": "output" if "output.weight" in tensors.names else "token_embd",
        "layer": "blk.{}",
        "attention_norm": "attn_norm",
        **{part: f"attn_{part}" for part in "qkv"},
        "o": "attn_output",
        "feed_forward_norm": "ffn_norm",
        **{part: f"ffn_{part}" for part in ("gate", "up", "down")},
    }
    return _logits(tensors, names, form, tokens)


# Keys that change what llama.cpp computes for a llama, and the values of which this file says how.
_DEFINED_IN_GGUF: dict[str, tuple[Any, ...]] = {
    "rope.scaling.type": ("linear", "none"),
    "rope.scaling.attn_factor": (1,),
    "attention.causal": (True,),
    **dict.fromkeys(("attention.scale", "logit_scale", "residual_scale", "embedding_scale"), (0,)),
    "expert_count": (0,),
}


@dataclass(frozen=True)
class _Form:
    n_layers: int
    n_heads: int
    n_groups: int
    rates: list[float]
    half_split: bool
    epsilon: float
    activation: Callable[[Tensor], Tensor]
    windows: list[int | None]  # of each layer


def _windows(config: Mapping[str, Any]) -> list[int | None]:
    n_layers, window = config["num_hidden_layers"], config.get("sliding_window", 4096)
    if config["model_type"] == "mistral":
        kinds = config.get("layer_types") or ["sliding_attention"] * n_layers
        return [window if kind == "sliding_attention" else None for kind in kinds]
    if config["model_type"] == "llama" or not given(config, "use_sliding_window", False):
        return [None] * n_layers
    kinds = config.get("layer_types")
    if kinds is None:
        first = given(config, "max_window_layers", 28)
        kinds = ["sliding_attention" if i >= first else "full_attention" for i in range(n_layers)]
    return [window if kind == "sliding_attention" else None for kind in kinds]


def _logits(tensors: FileTensors, names: Mapping[str, str], form: _Form, tokens: Tensor) -> Tensor:
    x = tensors.as_stored(f"{names['embedding']}.weight")[tokens].double()
    for i in range(form.n_layers):
        layer = tensors.within(names["layer"].format(i) + ".")

        def linear(x: Tensor, part: str, layer: FileTensors = layer) -> Tensor:
            bias = layer.get(f"{names[part]}.bias")
            out = x @ layer[f"{names[part]}.weight"].T
            return out if bias is None else out + bias

        read = rms_norm(x, form.epsilon, layer[f"{names['attention_norm']}.weight"])
        q = linear(read, "q").unflatten(-1, (form.n_heads, -1))
        k, v = (linear(read, part).unflatten(-1, (form.n_groups, -1)) for part in "kv")
        q, k = (turned(part, form.rates, form.half_split) for part in (q, k))
        mixed = attended(q, k, v, ScoreForm(q.shape[-1] ** -0.5), Visible(form.windows[i]))
        x = x + linear(mixed.flatten(2), "o")
        read = rms_norm(x, form.epsilon, layer[f"{names['feed_forward_norm']}.weight"])
        x = x + linear(form.activation(linear(read, "gate")) * linear(read, "up"), "down")
    final = rms_norm(x, form.epsilon, tensors[f"{names['final_norm']}.weight"])
    return read_out(final, tensors.as_stored(f"{names['unembedding']}.weight"))
