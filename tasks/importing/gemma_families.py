"""Gemma; Gemma 2, with bounds of scores and logits; Gemma 3's text models, with norms of queries and keys, two bases.

All have norms by 1 + weight and scaled embeddings; the later ones also norms of what sublayers write, and windows in
some layers. Source: Gemma Team 2024, 2025; transformers' GemmaForCausalLM, Gemma2ForCausalLM and Gemma3ForCausalLM.
"""

import math
from collections.abc import Mapping
from typing import Any

from headstream.models.architecture import Architecture
from headstream.tasks.importing.huggingface_family import (
    GATED_ACTIVATION_NAMES,
    layers_with_window,
    named_activation,
    windowed_fields,
)
from headstream.tasks.importing.llama_families import (
    FULL,
    WINDOWED,
    llama_config,
    llama_family,
    llama_fields,
    llama_placements,
    require_whole_heads,
    windowed_layers,
)
from headstream.tasks.importing.placements import Placement
from headstream.tasks.importing.settings import Settings
from headstream.tasks.importing.stretched_rotary import rotary_fields, stretching_config

_LOGIT_CAP, _SCORE_CAP, _SCALAR = "final_logit_softcapping", "attn_logit_softcapping", "query_pre_attn_scalar"
_NORMS = {
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "attention_out_norm",
    "pre_feedforward_layernorm": "feed_forward_norm",
    "post_feedforward_layernorm": "feed_forward_out_norm",
}
_ACTIVATIONS = GATED_ACTIVATION_NAMES | {"gelu": "geglu_tanh"}  # as the first Gemma's configs name them
_EVERY = 6  # of Gemma 3's layers sees all keys


def _shared_fields(settings: Settings, unsaid_groups: int, rotary: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that all have."""
    settings.must_be("use_bidirectional_attention", (None, False), "attention to later tokens")
    fields = llama_fields(settings, d_head=256, unsaid_groups=unsaid_groups, rotary=rotary)
    return fields | {
        "biases": settings.flag("attention_bias", False),
        "norm_offset": True,
        "embedding_scale": fields["d_model"] ** 0.5,
        "tied_embeddings": settings.flag("tie_word_embeddings", True),
    }


def _gemma_fields(settings: Settings) -> dict[str, Any]:
    settings.must_be("hidden_activation", (None, "gelu_pytorch_tanh"), "activation that transformers would read here")
    fields = _shared_fields(settings, 16, rotary_fields(settings))
    return fields | {"feed_forward": settings.choice("hidden_act", _ACTIVATIONS, "gelu_pytorch_tanh")}


def _fields(settings: Settings, rotary: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that the later ones have."""
    settings.ignore("hidden_act", "cache_implementation")  # another setting names the activation
    return _shared_fields(settings, 4, rotary) | {
        "feed_forward": settings.choice("hidden_activation", GATED_ACTIVATION_NAMES, "gelu_pytorch_tanh"),
        "normalization_place": "both",
        "score_scale": settings.number(_SCALAR, 256) ** -0.5,
    }


def _gemma2_fields(settings: Settings) -> dict[str, Any]:
    fields = _fields(settings, rotary_fields(settings))
    layers = _windowed_layers(settings, fields["n_layers"], 2)
    window = settings.whole("sliding_window", 4096)
    caps = {"score_cap": _cap(settings, _SCORE_CAP, 50.0), "logit_cap": _cap(settings, _LOGIT_CAP, 30.0)}
    return fields | caps | windowed_fields(window, layers, fields["n_layers"], fields["n_ctx"])


def _gemma3_fields(settings: Settings) -> dict[str, Any]:
    n_layers = settings.whole("num_hidden_layers")
    layers = _windowed_layers(settings, n_layers, max(1, settings.whole("sliding_window_pattern", _EVERY)))
    settings.ignore("_sliding_window_pattern")
    base, full = _base_in_windows(settings), _rotary_elsewhere(settings)
    fields = _fields(settings, full if len(layers) < n_layers else {"rotary_base": base})
    fields |= {"qk_normalization": True, "logit_cap": _cap(settings, _LOGIT_CAP, None)}
    window, n_ctx = settings.whole("sliding_window", 4096), fields["n_ctx"]
    if full == {"rotary_base": base} or not 0 < len(layers) < n_layers:
        return fields | windowed_fields(window, layers, n_layers, n_ctx)
    # Their bases tell layers apart even where a window hides nothing.
    windows = windowed_fields(min(window, n_ctx), layers, n_layers, n_ctx + 1)
    return fields | {"windowed_rotary_base": base} | windows


def _windowed_layers(settings: Settings, n_layers: int, every: int) -> list[int]:
    """Layers that have a window: by default all but each of so many."""
    return windowed_layers(settings, [FULL if (i + 1) % every == 0 else WINDOWED for i in range(n_layers)])


def _cap(settings: Settings, name: str, unsaid: float | None) -> float | None:
    """A bound, or none; `unsaid` if a config doesn't mention it."""
    if name in settings:
        return settings.number(name)
    return None if settings.says(name) else unsaid


def _base_in_windows(settings: Settings) -> float:
    """The base of rotary positions in layers with a window."""
    newer = settings.section("rope_parameters").section(WINDOWED)
    newer.must_be("rope_type", ("default",), "scaled rotary positions in layers with a window")
    return newer.number("rope_theta", settings.number("rope_local_base_freq", 10_000))


def _rotary_elsewhere(settings: Settings) -> dict[str, Any]:
    """Fields of rotary positions in layers without a window: whose settings are apart, in newer configs."""
    both = settings.section("rope_parameters")
    settings.must_be("partial_rotary_factor", (1,), "rotary positions on part of a head in this family")
    for name in ("rope_type", "rope_theta"):
        both.must_be(name, (None,), "rotary positions for all of Gemma 3's layers alike")
    said = both.section(FULL).all() | settings.section("rope_scaling").all()
    beside = {"rope_theta": settings.number("rope_theta", 1e6)}
    if "max_position_embeddings" in settings:
        beside["max_position_embeddings"] = settings.whole("max_position_embeddings")
    return rotary_fields(Settings(beside | {"rope_parameters": said}, settings.path))


def _gemma_config(architecture: Architecture) -> dict[str, Any]:
    named = {name: kind for name, kind in _ACTIVATIONS.items() if name != "gelu"}  # which earlier versions read exactly
    activation = named_activation(architecture.feed_forward, named)
    return llama_config(architecture) | {"attention_bias": architecture.biases, "hidden_act": activation}


def _config(architecture: Architecture) -> dict[str, Any]:
    """Settings that the later ones have."""
    a, windowed = architecture, layers_with_window(architecture)
    shared, scalar = {name: own for name, own in llama_config(a).items() if name != "hidden_act"}, a.query_scale**-2
    require_whole_heads(shared, "gemma")
    return shared | {
        "attention_bias": a.biases,
        "hidden_activation": named_activation(a.feed_forward, GATED_ACTIVATION_NAMES),
        _SCALAR: round(scalar) if math.isclose(scalar, round(scalar)) else scalar,
        _LOGIT_CAP: a.logit_cap,
        "layer_types": [WINDOWED if i in windowed else FULL for i in range(a.n_layers)],
        "sliding_window": len(a.visible_distances) if windowed else a.n_ctx,
    }


def _gemma2_config(architecture: Architecture) -> dict[str, Any]:
    return _config(architecture) | {_SCORE_CAP: architecture.score_cap}


def _gemma3_config(architecture: Architecture) -> dict[str, Any]:
    a = architecture
    base = a.windowed_rotary_base or a.rotary_base
    full = {"rope_type": "default", "rope_theta": a.rotary_base} | stretching_config(a).get("rope_scaling", {})
    return _config(a) | {
        "rope_parameters": {WINDOWED: {"rope_type": "default", "rope_theta": base}, FULL: full},
        "rope_local_base_freq": base,
    }


def _placements(architecture: Architecture, config: Mapping[str, Any]) -> list[Placement]:
    return llama_placements(architecture, config, _NORMS)


GEMMA = llama_family("gemma", "GemmaForCausalLM", _gemma_fields, _gemma_config)
GEMMA2 = llama_family(
    *("gemma2", "Gemma2ForCausalLM", _gemma2_fields, _gemma2_config, _placements),
    defines=(_LOGIT_CAP, _SCORE_CAP, _SCALAR),
)
GEMMA3 = llama_family(
    *("gemma3_text", "Gemma3ForCausalLM", _gemma3_fields, _gemma3_config, _placements), defines=(_LOGIT_CAP, _SCALAR)
)
