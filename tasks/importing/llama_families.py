"""Llama and its close relatives: Mistral, with a window of attention, and Qwen2, with biases on q, k and v.

Source: Touvron et al. 2023, Jiang et al. 2023, Yang et al. 2024; transformers' LlamaForCausalLM and its kin.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from headstream.models.architecture import Architecture
from headstream.models.architecture_config import MAX_CONTEXT
from headstream.models.attention_heads import SHARED_SUFFIX
from headstream.tasks.errors import UserError
from headstream.tasks.importing.huggingface_family import (
    GATED_ACTIVATION_NAMES,
    Family,
    layers_with_window,
    named_activation,
    windowed_fields,
)
from headstream.tasks.importing.layouts import (
    FLAT,
    HEADS_BELOW_ONE_ANOTHER,
    HEADS_SIDE_BY_SIDE,
    SAME,
    TRANSPOSED,
    transposed,
)
from headstream.tasks.importing.placements import Placement
from headstream.tasks.importing.settings import Settings
from headstream.tasks.importing.stretched_rotary import rotary_fields, stretching_config

FULL, WINDOWED = "full_attention", "sliding_attention"  # kinds of layers
_QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")


# Norms of a layer, and the parameters that they are.
_QK_NORMS = {"self_attn.q_norm": "attention.q_norm", "self_attn.k_norm": "attention.k_norm"}
_NORMS = {"input_layernorm": "attention_norm", "post_attention_layernorm": "feed_forward_norm"}


def llama_fields(
    settings: Settings,
    *,
    d_head: int | None = None,
    epsilon: float = 1e-6,
    unsaid_groups: int | None = None,
    rotary: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Fields of an architecture that Llama and its relatives have in common; `d_head` and `epsilon` are defaults.

    `unsaid_groups` is the number of keys and values of a config that doesn't mention them. Fields of rotary positions
    are those in `rotary`, if it is given, and otherwise read as Llama's.
    """
    settings.must_be("rope_interleaved", (False,), "Llama with neighbouring rotary pairs in this format")
    settings.ignore("pretraining_tp", "is_llama_config")
    d_model, n_heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    n_groups = settings.whole("num_key_value_heads", n_heads)
    if unsaid_groups is not None and not settings.says("num_key_value_heads"):
        n_groups = unsaid_groups
    return {
        "n_layers": settings.whole("num_hidden_layers"),
        "n_heads": n_heads,
        "n_key_value_heads": None if n_groups == n_heads else n_groups,
        "d_model": d_model,
        "d_head": settings.whole("head_dim", d_head or d_model // max(n_heads, 1)),
        "d_mlp": settings.whole("intermediate_size"),
        "n_ctx": min(settings.whole("max_position_embeddings", 2048), MAX_CONTEXT),
        "positions": "rotary",
        "rotary_pairs": "half-split",
        **(rotary or rotary_fields(settings)),
        "normalization": "rmsnorm",
        "norm_epsilon": settings.number("rms_norm_eps", epsilon),
        "feed_forward": settings.choice("hidden_act", GATED_ACTIVATION_NAMES, "silu"),
        "tied_embeddings": settings.flag("tie_word_embeddings", False),
    }


def _llama_fields(settings: Settings) -> dict[str, Any]:
    biases = [settings.flag(name, False) for name in ("attention_bias", "mlp_bias")]
    return llama_fields(settings) | {"biases": any(biases)}


def _mistral_fields(settings: Settings) -> dict[str, Any]:
    fields = llama_fields(settings, unsaid_groups=8)
    n_layers = fields["n_layers"]
    layers = windowed_layers(settings, [WINDOWED] * n_layers)
    return fields | windowed_fields(_window(settings, fields), layers, n_layers, fields["n_ctx"])


def _qwen2_fields(settings: Settings) -> dict[str, Any]:
    return with_windows_of_qwen(llama_fields(settings, unsaid_groups=32) | {"qkv_biases": True}, settings)


def with_windows_of_qwen(fields: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """Fields with the windows that Qwen's configs speak of."""
    window = _window(settings, fields)
    if not settings.flag("use_sliding_window", False):
        window = fields["n_ctx"]
    first_windowed = settings.whole("max_window_layers", 28)
    by_layer = [WINDOWED if layer >= first_windowed else FULL for layer in range(fields["n_layers"])]
    layers = windowed_layers(settings, by_layer)
    return fields | windowed_fields(window, layers, fields["n_layers"], fields["n_ctx"])


def windowed_layers(settings: Settings, unsaid: Sequence[str]) -> list[int]:
    """Layers that have a window, by `layer_types`; `unsaid` are the kinds of layers by a config that has none.

    Raises:
        UserError: it names another kind, or not each layer's.
    """
    kinds = settings.words("layer_types") or unsaid
    if len(kinds) != len(unsaid) or not {*kinds} <= {FULL, WINDOWED}:
        raise UserError(
            f"layer_types must say {FULL} or {WINDOWED} of each of {len(unsaid)} layers in {settings.path}. Give the"
            " config that belongs to the weights, or choose another model."
        )
    return [i for i, kind in enumerate(kinds) if kind == WINDOWED]


def _window(settings: Settings, fields: dict[str, Any]) -> int:
    """The number of keys in a window: 4096 by a config without the setting, the whole context by one that has null."""
    return settings.whole("sliding_window", fields["n_ctx"] if settings.says("sliding_window") else 4096)


def llama_config(architecture: Architecture) -> dict[str, Any]:
    """Settings that Llama and its relatives have in common."""
    a = architecture
    n_heads = a.heads_per_layer[0] if a.n_layers else 1
    return {
        "num_hidden_layers": a.n_layers,
        "num_attention_heads": n_heads,
        "num_key_value_heads": a.n_key_value_heads or n_heads,
        "hidden_size": a.d_model,
        "head_dim": a.head_width,
        "intermediate_size": a.mlp_width or 4 * a.d_model,
        "max_position_embeddings": a.n_ctx,
        "rope_theta": a.rotary_base,
        **stretching_config(a),
        "rms_norm_eps": a.epsilon_of("rmsnorm"),
        "hidden_act": named_activation(a.feed_forward, GATED_ACTIVATION_NAMES),
        "tie_word_embeddings": a.tied_embeddings,
    }


def _llama_config(architecture: Architecture) -> dict[str, Any]:
    config = llama_config(architecture)
    require_whole_heads(config, "llama")
    return config | {"attention_bias": architecture.biases, "mlp_bias": architecture.biases}


def require_whole_heads(config: Mapping[str, Any], kind: str) -> None:
    """Raise UserError where transformers refuses a config for its number of heads."""
    if config["hidden_size"] % config["num_attention_heads"]:
        raise UserError(f"in a {kind}, hidden_size must be a multiple of num_attention_heads, whatever head_dim is.")


def _mistral_config(architecture: Architecture) -> dict[str, Any]:
    window = architecture.visible_distances.stop if architecture.attention == "local" else None
    return llama_config(architecture) | {"sliding_window": window}


def _qwen2_config(architecture: Architecture) -> dict[str, Any]:
    return llama_config(architecture) | windows_of_qwen(architecture)


def windows_of_qwen(architecture: Architecture) -> dict[str, Any]:
    """Settings of Qwen's configs about windows."""
    a, windowed = architecture, layers_with_window(architecture)
    if not windowed:
        return {"use_sliding_window": False}
    kinds = [WINDOWED if i in windowed else FULL for i in range(a.n_layers)]
    first = kinds.index(WINDOWED)
    window = {"sliding_window": a.visible_distances.stop, "max_window_layers": first, "layer_types": kinds}
    return {"use_sliding_window": True, **window}


def llama_placements(
    architecture: Architecture, config: Mapping[str, Any], norms: Mapping[str, str] = _NORMS
) -> list[Placement]:
    """The places of Llama's tensors, in relatives with other norms, too."""
    shared = SHARED_SUFFIX if any(architecture.key_value_heads(n) < n for n in architecture.heads_per_layer) else ""
    placed = [
        Placement("model.embed_tokens.weight", SAME, ("W_E",)),
        Placement("model.norm.weight", SAME, ("final_norm.weight",)),
    ]
    if not architecture.tied_embeddings:
        placed.append(Placement("lm_head.weight", TRANSPOSED, ("W_U_free",)))
    heads_in, heads_out = transposed(HEADS_SIDE_BY_SIDE), transposed(HEADS_BELOW_ONE_ANOTHER)
    modules = {  # of a layer: layouts of matrix and bias, module, parameter, and the setting that switches its bias on
        "self_attn.q_proj": (heads_in, FLAT, "attention", "_Q", "attention_bias"),
        "self_attn.k_proj": (heads_in, FLAT, "attention", f"_K{shared}", "attention_bias"),
        "self_attn.v_proj": (heads_in, FLAT, "attention", f"_V{shared}", "attention_bias"),
        "self_attn.o_proj": (heads_out, SAME, "attention", "_O", "attention_bias"),
        "mlp.gate_proj": (TRANSPOSED, SAME, "feed_forward", "_gate", "mlp_bias"),
        "mlp.up_proj": (TRANSPOSED, SAME, "feed_forward", "_in", "mlp_bias"),
        "mlp.down_proj": (TRANSPOSED, SAME, "feed_forward", "_out", "mlp_bias"),
    }
    of_qk_norm = FLAT if architecture.qk_normalization_over == "layer" else SAME
    for i in range(architecture.n_layers):
        block, layer = f"model.layers.{i}", f"layers.{i}"
        placed += [Placement(f"{block}.{name}.weight", SAME, (f"{layer}.{own}.weight",)) for name, own in norms.items()]
        placed += [
            Placement(f"{block}.{name}.weight", of_qk_norm, (f"{layer}.{own}.weight",))
            for name, own in (_QK_NORMS if architecture.qk_normalization else {}).items()
        ]
        for name, (layout, of_bias, module, end, switch) in modules.items():
            placed.append(Placement(f"{block}.{name}.weight", layout, (f"{layer}.{module}.W{end}",)))
            if (architecture.biases and config.get(switch)) or (architecture.qkv_biases and name in _QKV):
                placed.append(Placement(f"{block}.{name}.bias", of_bias, (f"{layer}.{module}.b{end}",)))
    return placed


def llama_family(
    model_type: str,
    class_name: str,
    fields: Callable[[Settings], dict[str, Any]],
    config: Callable[[Architecture], dict[str, Any]],
    placements: Callable[[Architecture, Mapping[str, Any]], list[Placement]] = llama_placements,
    defines: Collection[str] = (),
) -> Family:
    """A model type whose tensors have Llama's names."""
    return Family(
        model_type=model_type,
        class_name=class_name,
        prefix="model.",
        unembedding="lm_head.weight",
        embedding="model.embed_tokens.weight",
        buffers=re.compile(r"\.rotary_emb\.inv_freq$"),
        fields=fields,
        config=config,
        placements=placements,
        defines=defines,
    )


LLAMA = llama_family("llama", "LlamaForCausalLM", _llama_fields, _llama_config)
MISTRAL = llama_family("mistral", "MistralForCausalLM", _mistral_fields, _mistral_config)
QWEN2 = llama_family("qwen2", "Qwen2ForCausalLM", _qwen2_fields, _qwen2_config)
