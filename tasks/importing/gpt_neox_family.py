"""GPT-NeoX, of which Pythia is one: rotary positions on part of a head, parallel sublayers, biases.

Source: Black et al. 2022; transformers' GPTNeoXForCausalLM.
"""

import re
from collections.abc import Mapping
from typing import Any

from headstream.models.architecture import Architecture
from headstream.tasks.importing.huggingface_family import ACTIVATION_NAMES, Family, named_activation
from headstream.tasks.importing.layouts import (
    FUSED_BIAS_BY_HEAD,
    FUSED_BY_HEAD,
    HEADS_BELOW_ONE_ANOTHER,
    SAME,
    TRANSPOSED,
    transposed,
)
from headstream.tasks.importing.placements import Placement
from headstream.tasks.importing.rotary_settings import rotary_base_of, rotary_fraction_of
from headstream.tasks.importing.settings import Settings


def _fields(settings: Settings) -> dict[str, Any]:
    settings.ignore("attention_bias")  # read below
    base = rotary_base_of(settings, "rotary_emb_base")
    fraction = rotary_fraction_of(settings, "rotary_pct", 0.25)
    settings.may_repeat("rope_theta", base)  # some versions write these besides, and none reads them
    settings.may_repeat("partial_rotary_factor", fraction)
    return {
        "n_layers": settings.whole("num_hidden_layers"),
        "n_heads": settings.whole("num_attention_heads"),
        "d_model": settings.whole("hidden_size"),
        "d_mlp": settings.whole("intermediate_size"),
        "n_ctx": settings.whole("max_position_embeddings", 2048),
        "positions": "rotary",
        "rotary_pairs": "half-split",
        "rotary_base": base,
        "rotary_fraction": fraction,
        "normalization": "layernorm",
        "norm_epsilon": settings.number("layer_norm_eps", 1e-5),
        "feed_forward": settings.choice("hidden_act", ACTIVATION_NAMES, "gelu"),
        "parallel_sublayers": settings.flag("use_parallel_residual", True),
        "biases": True,
        "tied_embeddings": settings.flag("tie_word_embeddings", False),
    }


def _config(architecture: Architecture) -> dict[str, Any]:
    a = architecture
    return {
        "num_hidden_layers": a.n_layers,
        "num_attention_heads": a.heads_per_layer[0] if a.n_layers else 1,
        "hidden_size": a.d_model,
        "intermediate_size": a.mlp_width or 4 * a.d_model,
        "max_position_embeddings": a.n_ctx,
        "rotary_emb_base": a.rotary_base,
        "rotary_pct": a.rotary_fraction,
        "layer_norm_eps": a.epsilon_of("layernorm"),
        "hidden_act": named_activation(a.feed_forward, ACTIVATION_NAMES),
        "use_parallel_residual": a.parallel_sublayers,
        "attention_bias": True,
        "tie_word_embeddings": a.tied_embeddings,
    }


def _placements(architecture: Architecture, config: Mapping[str, Any]) -> list[Placement]:
    placed = [Placement("gpt_neox.embed_in.weight", SAME, ("W_E",))]
    norms = {"gpt_neox.final_layer_norm": "final_norm"}
    if not architecture.tied_embeddings:
        placed.append(Placement("embed_out.weight", TRANSPOSED, ("W_U_free",)))
    for i in range(architecture.n_layers):
        block, attention, mlp = f"gpt_neox.layers.{i}", f"layers.{i}.attention", f"layers.{i}.feed_forward"
        norms |= {
            f"{block}.input_layernorm": f"layers.{i}.attention_norm",
            f"{block}.post_attention_layernorm": f"layers.{i}.feed_forward_norm",
        }
        fused, dense = f"{block}.attention.query_key_value", f"{block}.attention.dense"
        placed += [
            Placement(f"{fused}.weight", FUSED_BY_HEAD, tuple(f"{attention}.W_{which}" for which in "QKV")),
            Placement(f"{dense}.weight", transposed(HEADS_BELOW_ONE_ANOTHER), (f"{attention}.W_O",)),
            Placement(f"{block}.mlp.dense_h_to_4h.weight", TRANSPOSED, (f"{mlp}.W_in",)),
            Placement(f"{block}.mlp.dense_h_to_4h.bias", SAME, (f"{mlp}.b_in",)),
            Placement(f"{block}.mlp.dense_4h_to_h.weight", TRANSPOSED, (f"{mlp}.W_out",)),
            Placement(f"{block}.mlp.dense_4h_to_h.bias", SAME, (f"{mlp}.b_out",)),
        ]
        if config.get("attention_bias", True):
            placed += [
                Placement(f"{fused}.bias", FUSED_BIAS_BY_HEAD, tuple(f"{attention}.b_{which}" for which in "QKV")),
                Placement(f"{dense}.bias", SAME, (f"{attention}.b_O",)),
            ]
    return placed + [
        Placement(f"{name}.{part}", SAME, (f"{own}.{part}",))
        for name, own in norms.items()
        for part in ("weight", "bias")
    ]


GPT_NEOX = Family(
    model_type="gpt_neox",
    class_name="GPTNeoXForCausalLM",
    prefix="gpt_neox.",
    unembedding="embed_out.weight",
    embedding="gpt_neox.embed_in.weight",
    buffers=re.compile(r"\.attention\.((masked_)?bias|rotary_emb\.inv_freq)$|\.rotary_emb\.inv_freq$"),
    fields=_fields,
    config=_config,
    placements=_placements,
)
