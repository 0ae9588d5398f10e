"""Phi: parallel sublayers that read one norm, rotary positions on part of a head, biases everywhere, on logits, too.

Source: Gunasekar et al. 2023, Li et al. 2023; transformers' PhiForCausalLM.
"""

import re
from collections.abc import Mapping
from typing import Any

from headstream.models.architecture import Architecture
from headstream.models.attention_heads import SHARED_SUFFIX
from headstream.tasks.importing.huggingface_family import ACTIVATION_NAMES, Family, named_activation
from headstream.tasks.importing.layouts import (
    ALIKE,
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


def _fields(settings: Settings) -> dict[str, Any]:
    n_heads = settings.whole("num_attention_heads")
    n_groups = settings.whole("num_key_value_heads", n_heads)
    return {
        "n_layers": settings.whole("num_hidden_layers"),
        "n_heads": n_heads,
        "n_key_value_heads": None if n_groups == n_heads else n_groups,
        "d_model": settings.whole("hidden_size"),
        "d_mlp": settings.whole("intermediate_size"),
        "n_ctx": settings.whole("max_position_embeddings", 2048),
        "positions": "rotary",
        "rotary_pairs": "half-split",
        **rotary_fields(settings, fraction=0.5),
        "normalization": "layernorm",
        "norm_epsilon": settings.number("layer_norm_eps", 1e-5),
        "feed_forward": settings.choice("hidden_act", ACTIVATION_NAMES, "gelu_new"),
        "parallel_sublayers": True,
        "biases": True,
        "tied_embeddings": settings.flag("tie_word_embeddings", False),
    }


def _config(architecture: Architecture) -> dict[str, Any]:
    a = architecture
    n_heads = a.heads_per_layer[0] if a.n_layers else 1
    return {
        "num_hidden_layers": a.n_layers,
        "num_attention_heads": n_heads,
        "num_key_value_heads": a.n_key_value_heads or n_heads,
        "hidden_size": a.d_model,
        "intermediate_size": a.mlp_width or 4 * a.d_model,
        "max_position_embeddings": a.n_ctx,
        "rope_theta": a.rotary_base,
        "partial_rotary_factor": a.rotary_fraction,
        **stretching_config(a),
        "layer_norm_eps": a.epsilon_of("layernorm"),
        "hidden_act": named_activation(a.feed_forward, ACTIVATION_NAMES),
        "tie_word_embeddings": a.tied_embeddings,
    }


def _placements(architecture: Architecture, config: Mapping[str, Any]) -> list[Placement]:
    shared = SHARED_SUFFIX if any(architecture.key_value_heads(n) < n for n in architecture.heads_per_layer) else ""
    heads_in, heads_out = transposed(HEADS_SIDE_BY_SIDE), transposed(HEADS_BELOW_ONE_ANOTHER)
    modules = {  # of a layer: layouts of matrix and bias, and the parameter
        "self_attn.q_proj": (heads_in, FLAT, "attention", "_Q"),
        "self_attn.k_proj": (heads_in, FLAT, "attention", f"_K{shared}"),
        "self_attn.v_proj": (heads_in, FLAT, "attention", f"_V{shared}"),
        "self_attn.dense": (heads_out, SAME, "attention", "_O"),
        "mlp.fc1": (TRANSPOSED, SAME, "feed_forward", "_in"),
        "mlp.fc2": (TRANSPOSED, SAME, "feed_forward", "_out"),
    }
    placed = [Placement("model.embed_tokens.weight", SAME, ("W_E",)), Placement("lm_head.bias", SAME, ("b_U",))]
    if not architecture.tied_embeddings:
        placed.append(Placement("lm_head.weight", TRANSPOSED, ("W_U_free",)))
    for part in ("weight", "bias"):
        placed.append(Placement(f"model.final_layernorm.{part}", SAME, (f"final_norm.{part}",)))
        for i in range(architecture.n_layers):
            both = tuple(f"layers.{i}.{sublayer}_norm.{part}" for sublayer in ("attention", "feed_forward"))
            placed.append(Placement(f"model.layers.{i}.input_layernorm.{part}", ALIKE, both))
    for i in range(architecture.n_layers):
        for name, (layout, of_bias, module, end) in modules.items():
            own = f"layers.{i}.{module}"
            placed.append(Placement(f"model.layers.{i}.{name}.weight", layout, (f"{own}.W{end}",)))
            placed.append(Placement(f"model.layers.{i}.{name}.bias", of_bias, (f"{own}.b{end}",)))
    return placed


PHI = Family(
    model_type="phi",
    class_name="PhiForCausalLM",
    prefix="model.",
    unembedding="lm_head.weight",
    embedding="model.embed_tokens.weight",
    buffers=re.compile(r"\.rotary_emb\.inv_freq$"),
    fields=_fields,
    config=_config,
    placements=_placements,
)
