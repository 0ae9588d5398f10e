"""GPT-Neo, of which TinyStories' models are: scores that aren't scaled, and windows in some layers.

Source: Black et al. 2021; transformers' GPTNeoForCausalLM, whose queries, keys and values have no biases.
"""

import re
from collections.abc import Mapping
from typing import Any

from headstream.models.architecture import Architecture
from headstream.tasks.errors import UserError
from headstream.tasks.importing.huggingface_family import (
    ACTIVATION_NAMES,
    Family,
    layers_with_window,
    named_activation,
    windowed_fields,
)
from headstream.tasks.importing.layouts import HEADS_BELOW_ONE_ANOTHER, HEADS_SIDE_BY_SIDE, SAME, TRANSPOSED, transposed
from headstream.tasks.importing.placements import Placement
from headstream.tasks.importing.settings import Settings

_GLOBAL, _LOCAL = "global", "local"  # kinds of layers


def _fields(settings: Settings) -> dict[str, Any]:
    settings.ignore("resid_dropout", "embed_dropout")
    d_model, n_layers = settings.whole("hidden_size"), settings.whole("num_layers")
    n_ctx = settings.whole("max_position_embeddings", 2048)
    n_heads = settings.whole("num_heads")
    for other, own in (("num_attention_heads", n_heads), ("num_hidden_layers", n_layers)):
        settings.must_be(other, (None, own), "other count under a second name")
    windowed = [i for i, kind in enumerate(_kinds(settings, n_layers)) if kind == _LOCAL]
    return {
        "n_layers": n_layers,
        "n_heads": n_heads,
        "d_model": d_model,
        "n_ctx": n_ctx,
        "positions": "learned",
        "normalization": "layernorm",
        "norm_epsilon": settings.number("layer_norm_epsilon", 1e-5),
        "feed_forward": settings.choice("activation_function", ACTIVATION_NAMES, "gelu_new"),
        "d_mlp": settings.whole("intermediate_size", 4 * d_model),
        "biases": True,
        "tied_embeddings": settings.flag("tie_word_embeddings", True),
        "score_scale": 1.0,
        **windowed_fields(settings.whole("window_size", 256), windowed, n_layers, n_ctx),
    }


def _kinds(settings: Settings, n_layers: int) -> list[str]:
    """The kind of each layer: `attention_types` is a list of patterns, each with how often it repeats."""
    patterns = settings.all().get("attention_types", [[[_GLOBAL, _LOCAL], 12]])
    try:
        kinds = [kind for pattern, times in patterns for kind in times * pattern]
    except (TypeError, ValueError):
        kinds = []
    listed = settings.words("attention_layers") or kinds
    if (
        not {*listed} <= {_GLOBAL, _LOCAL}
        or len(listed) != n_layers
        or ("attention_types" in settings and kinds != listed)
    ):
        raise UserError(
            f"attention_types must say global or local of each of {n_layers} layers, and attention_layers the same, in"
            f" {settings.path}. Give the config that belongs to the weights."
        )
    return listed


def _config(architecture: Architecture) -> dict[str, Any]:
    a, windowed = architecture, layers_with_window(architecture)
    kinds = [_LOCAL if i in windowed else _GLOBAL for i in range(a.n_layers)]
    return {
        "num_layers": a.n_layers,
        "num_heads": a.heads_per_layer[0] if a.n_layers else 1,
        "hidden_size": a.d_model,
        "max_position_embeddings": a.n_ctx,
        "attention_types": [[[kind], 1] for kind in kinds],
        "attention_layers": kinds,
        "window_size": len(a.visible_distances) if windowed else a.n_ctx,
        "layer_norm_epsilon": a.epsilon_of("layernorm"),
        "activation_function": named_activation(a.feed_forward, ACTIVATION_NAMES),
        "intermediate_size": a.mlp_width or None,
        "tie_word_embeddings": a.tied_embeddings,
    }


def _placements(architecture: Architecture, config: Mapping[str, Any]) -> list[Placement]:
    placed = [
        Placement("transformer.wte.weight", SAME, ("W_E",)),
        Placement("transformer.wpe.weight", SAME, ("W_pos",)),
    ]
    norms = {"transformer.ln_f": "final_norm"}
    if not architecture.tied_embeddings:
        placed.append(Placement("lm_head.weight", TRANSPOSED, ("W_U_free",)))
    for i in range(architecture.n_layers):
        block, attention, mlp = f"transformer.h.{i}", f"layers.{i}.attention", f"layers.{i}.feed_forward"
        norms |= {f"{block}.ln_1": f"layers.{i}.attention_norm", f"{block}.ln_2": f"layers.{i}.feed_forward_norm"}
        placed += [
            Placement(
                f"{block}.attn.attention.{which}_proj.weight",
                transposed(HEADS_SIDE_BY_SIDE),
                (f"{attention}.W_{which.upper()}",),
            )
            for which in "qkv"
        ]
        placed += [
            Placement(
                f"{block}.attn.attention.out_proj.weight", transposed(HEADS_BELOW_ONE_ANOTHER), (f"{attention}.W_O",)
            ),
            Placement(f"{block}.attn.attention.out_proj.bias", SAME, (f"{attention}.b_O",)),
            Placement(f"{block}.mlp.c_fc.weight", TRANSPOSED, (f"{mlp}.W_in",)),
            Placement(f"{block}.mlp.c_fc.bias", SAME, (f"{mlp}.b_in",)),
            Placement(f"{block}.mlp.c_proj.weight", TRANSPOSED, (f"{mlp}.W_out",)),
            Placement(f"{block}.mlp.c_proj.bias", SAME, (f"{mlp}.b_out",)),
        ]
    return placed + [
        Placement(f"{n}.{part}", SAME, (f"{own}.{part}",)) for n, own in norms.items() for part in ("weight", "bias")
    ]


GPT_NEO = Family(
    model_type="gpt_neo",
    class_name="GPTNeoForCausalLM",
    prefix="transformer.",
    unembedding="lm_head.weight",
    embedding="transformer.wte.weight",
    buffers=re.compile(r"\.attn\.attention\.(masked_)?bias$"),
    fields=_fields,
    config=_config,
    placements=_placements,
)
