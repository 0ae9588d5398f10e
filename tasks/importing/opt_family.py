"""OPT: learned positions counted from 2, ReLU, norms before sublayers.

Source: Zhang et al. 2022; transformers' OPTForCausalLM.
"""

import re
from collections.abc import Mapping
from typing import Any

import torch

from headstream.models.architecture import Architecture
from headstream.tasks.importing.huggingface_family import ACTIVATION_NAMES, Family, named_activation
from headstream.tasks.importing.layouts import (
    FLAT,
    HEADS_BELOW_ONE_ANOTHER,
    HEADS_SIDE_BY_SIDE,
    SAME,
    TRANSPOSED,
    Layout,
    transposed,
)
from headstream.tasks.importing.placements import Placement
from headstream.tasks.importing.settings import Settings

_FIRST_POSITION = 2  # rows before it are of padding
_POSITIONS = Layout(
    lambda W_pos: torch.cat([W_pos.new_zeros(_FIRST_POSITION, W_pos.shape[1]), W_pos]),
    lambda tensor, shapes: (tensor[_FIRST_POSITION:],),
)


def _fields(settings: Settings) -> dict[str, Any]:
    settings.must_be("do_layer_norm_before", (True,), "OPT with norms after sublayers")
    settings.must_be("_remove_final_layer_norm", (False,), "OPT without its last norm")
    settings.must_be("enable_bias", (True,), "OPT without biases")
    settings.must_be("layer_norm_elementwise_affine", (True,), "OPT whose norms have no weights")
    d_model = settings.whole("hidden_size")
    settings.must_be("word_embed_proj_dim", (None, d_model), "projection between embeddings and the stream")
    settings.ignore("dropout", "activation_dropout", "layerdrop", "init_std")
    return {
        "n_layers": settings.whole("num_hidden_layers"),
        "n_heads": settings.whole("num_attention_heads"),
        "d_model": d_model,
        "d_mlp": settings.whole("ffn_dim"),
        "n_ctx": settings.whole("max_position_embeddings", 2048),
        "positions": "learned",
        "normalization": "layernorm",
        "norm_epsilon": 1e-5,
        "feed_forward": settings.choice("activation_function", ACTIVATION_NAMES, "relu"),
        "biases": True,
        "tied_embeddings": settings.flag("tie_word_embeddings", True),
    }


def _config(architecture: Architecture) -> dict[str, Any]:
    a = architecture
    return {
        "num_hidden_layers": a.n_layers,
        "num_attention_heads": a.heads_per_layer[0] if a.n_layers else 1,
        "hidden_size": a.d_model,
        "word_embed_proj_dim": a.d_model,
        "ffn_dim": a.mlp_width or 4 * a.d_model,
        "max_position_embeddings": a.n_ctx,
        "activation_function": named_activation(a.feed_forward, ACTIVATION_NAMES),
        "do_layer_norm_before": True,
        "tie_word_embeddings": a.tied_embeddings,
    }


def _placements(architecture: Architecture, config: Mapping[str, Any]) -> list[Placement]:
    heads_in, heads_out = transposed(HEADS_SIDE_BY_SIDE), transposed(HEADS_BELOW_ONE_ANOTHER)
    modules = {  # of a layer: layouts of matrix and bias, and the parameter
        **{f"self_attn.{which}_proj": (heads_in, FLAT, "attention", f"_{which.upper()}") for which in "qkv"},
        "self_attn.out_proj": (heads_out, SAME, "attention", "_O"),
        "fc1": (TRANSPOSED, SAME, "feed_forward", "_in"),
        "fc2": (TRANSPOSED, SAME, "feed_forward", "_out"),
    }
    placed = [
        Placement("model.decoder.embed_tokens.weight", SAME, ("W_E",)),
        Placement("model.decoder.embed_positions.weight", _POSITIONS, ("W_pos",)),
    ]
    norms = {"model.decoder.final_layer_norm": "final_norm"}
    if not architecture.tied_embeddings:
        placed.append(Placement("lm_head.weight", TRANSPOSED, ("W_U_free",)))
    for i in range(architecture.n_layers):
        block = f"model.decoder.layers.{i}"
        norms[f"{block}.self_attn_layer_norm"] = f"layers.{i}.attention_norm"
        norms[f"{block}.final_layer_norm"] = f"layers.{i}.feed_forward_norm"
        for name, (layout, of_bias, module, end) in modules.items():
            own = f"layers.{i}.{module}"
            placed.append(Placement(f"{block}.{name}.weight", layout, (f"{own}.W{end}",)))
            placed.append(Placement(f"{block}.{name}.bias", of_bias, (f"{own}.b{end}",)))
    return placed + [
        Placement(f"{name}.{part}", SAME, (f"{own}.{part}",))
        for name, own in norms.items()
        for part in ("weight", "bias")
    ]


OPT = Family(
    model_type="opt",
    class_name="OPTForCausalLM",
    prefix="model.",
    unembedding="lm_head.weight",
    embedding="model.decoder.embed_tokens.weight",
    buffers=re.compile(r"^model\.decoder\.version$"),
    fields=_fields,
    config=_config,
    placements=_placements,
)
