"""GPT-2, and nanoGPT after it: learned positions, LayerNorm, biases, one fused matrix of queries, keys and values.

Source: Radford et al. 2019; transformers' GPT2LMHeadModel, whose Conv1D is [in, out]; nanoGPT's nn.Linear is [out, in].
"""

import re
from collections.abc import Mapping
from typing import Any

from headstream.models.architecture import Architecture
from headstream.tasks.importing.huggingface_family import ACTIVATION_NAMES, Family, named_activation
from headstream.tasks.importing.layouts import (
    FLAT,
    HEADS_BELOW_ONE_ANOTHER,
    HEADS_SIDE_BY_SIDE,
    SAME,
    TRANSPOSED,
    in_turn,
    transposed,
)
from headstream.tasks.importing.placements import Placement
from headstream.tasks.importing.settings import Settings

GPT2_BUFFERS = re.compile(r"\.attn\.(masked_)?bias$")


def gpt2_placements(architecture: Architecture, *, linear: bool, biases: bool) -> list[Placement]:
    """The places of GPT-2's tensors; with `linear`, matrices are [out, in]."""
    turned = transposed if linear else (lambda layout: layout)
    matrices = {  # of a layer: the tensor, its layout as [in, out], its bias's layout, and the parameters in it
        "attn.c_attn": (in_turn(HEADS_SIDE_BY_SIDE, 1), in_turn(FLAT, 0), "attention", ("_Q", "_K", "_V")),
        "attn.c_proj": (HEADS_BELOW_ONE_ANOTHER, SAME, "attention", ("_O",)),
        "mlp.c_fc": (SAME, SAME, "feed_forward", ("_in",)),
        "mlp.c_proj": (SAME, SAME, "feed_forward", ("_out",)),
    }
    norms = {"transformer.ln_f": "final_norm"}
    placed = [
        Placement("transformer.wte.weight", SAME, ("W_E",)),
        Placement("transformer.wpe.weight", SAME, ("W_pos",)),
    ]
    if not architecture.tied_embeddings:
        placed.append(Placement("lm_head.weight", TRANSPOSED, ("W_U_free",)))
    for i in range(architecture.n_layers):
        block, layer = f"transformer.h.{i}", f"layers.{i}"
        norms |= {f"{block}.ln_1": f"{layer}.attention_norm", f"{block}.ln_2": f"{layer}.feed_forward_norm"}
        for name, (layout, of_bias, module, ends) in matrices.items():
            weights = tuple(f"{layer}.{module}.W{end}" for end in ends)
            vectors = tuple(f"{layer}.{module}.b{end}" for end in ends)
            placed.append(Placement(f"{block}.{name}.weight", turned(layout), weights))
            if biases:
                placed.append(Placement(f"{block}.{name}.bias", of_bias, vectors))
    parts = ("weight", "bias") if biases else ("weight",)
    return placed + [Placement(f"{n}.{part}", SAME, (f"{own}.{part}",)) for n, own in norms.items() for part in parts]


# Names by which transformers reads the same settings, and prefers them.
_OTHER_NAMES = {"n_head": "num_attention_heads", "n_embd": "hidden_size", "n_layer": "num_hidden_layers"}


def _fields(settings: Settings) -> dict[str, Any]:
    settings.must_be("scale_attn_weights", (True,), "attention without a scale")
    settings.must_be("scale_attn_by_inverse_layer_idx", (False,), "scale of attention by layer")
    settings.must_be("add_cross_attention", (False,), "cross attention")
    settings.must_be("pruned_heads", ({},), "count of heads that a config changes by layer")
    settings.ignore("reorder_and_upcast_attn", "n_ctx")
    for name, other in _OTHER_NAMES.items():
        settings.must_be(other, (None, settings.whole(name)), f"place for a {other} apart from {name}")
    d_model = settings.whole("n_embd")
    return {
        "n_layers": settings.whole("n_layer"),
        "n_heads": settings.whole("n_head"),
        "d_model": d_model,
        "n_ctx": settings.whole("n_positions", 1024),
        "positions": "learned",
        "normalization": "layernorm",
        "norm_epsilon": settings.number("layer_norm_epsilon", 1e-5),
        "feed_forward": settings.choice("activation_function", ACTIVATION_NAMES, "gelu_new"),
        "d_mlp": settings.whole("n_inner", 4 * d_model),
        "biases": True,
        "tied_embeddings": settings.flag("tie_word_embeddings", True),
    }


def _config(architecture: Architecture) -> dict[str, Any]:
    a = architecture
    return {
        "n_layer": a.n_layers,
        "n_head": a.heads_per_layer[0] if a.n_layers else 1,
        "n_embd": a.d_model,
        "n_positions": a.n_ctx,
        "layer_norm_epsilon": a.epsilon_of("layernorm"),
        "activation_function": named_activation(a.feed_forward, ACTIVATION_NAMES),
        "n_inner": a.mlp_width or None,
        "tie_word_embeddings": a.tied_embeddings,
    }


def _placements(architecture: Architecture, config: Mapping[str, Any]) -> list[Placement]:
    return gpt2_placements(architecture, linear=False, biases=True)


GPT2 = Family(
    model_type="gpt2",
    class_name="GPT2LMHeadModel",
    prefix="transformer.",
    unembedding="lm_head.weight",
    embedding="transformer.wte.weight",
    buffers=GPT2_BUFFERS,
    fields=_fields,
    config=_config,
    placements=_placements,
)
