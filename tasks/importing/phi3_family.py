"""Phi-3: a Llama with fused matrices of queries, keys and values, and of the two maps into a feed-forward layer.

Source: Abdin et al. 2024; transformers' Phi3ForCausalLM.
"""

from collections.abc import Mapping
from typing import Any

from headstream.models.architecture import Architecture
from headstream.models.attention_heads import SHARED_SUFFIX
from headstream.tasks.importing.huggingface_family import layers_with_window, windowed_fields
from headstream.tasks.importing.layouts import HEADS_SIDE_BY_SIDE, SAME, in_turn, transposed
from headstream.tasks.importing.llama_families import llama_config, llama_family, llama_fields, llama_placements
from headstream.tasks.importing.placements import Placement
from headstream.tasks.importing.rotary_settings import rotary_base_of, rotary_fraction_of
from headstream.tasks.importing.settings import Settings

_APART = ("q_proj.weight", "k_proj.weight", "v_proj.weight", "gate_proj.weight", "up_proj.weight")


def _fields(settings: Settings) -> dict[str, Any]:
    settings.ignore("original_max_position_embeddings", "embd_pdrop", "resid_pdrop")  # the first is of scaled positions
    fields = llama_fields(settings, epsilon=1e-5, rotary=_rotary(settings))
    n_layers, n_ctx = fields["n_layers"], fields["n_ctx"]
    window = settings.whole("sliding_window", n_ctx)
    return fields | windowed_fields(window, range(n_layers), n_layers, n_ctx)


def _rotary(settings: Settings) -> dict[str, Any]:
    """Fields of rotary positions, which transformers reads in this family if nothing stretches them."""
    fraction = rotary_fraction_of(settings, "partial_rotary_factor", 1.0)
    return {"rotary_base": rotary_base_of(settings, "rope_theta"), "rotary_fraction": fraction}


def _config(architecture: Architecture) -> dict[str, Any]:
    a = architecture
    window = len(a.visible_distances) if layers_with_window(a) else None
    return llama_config(a) | {"partial_rotary_factor": a.rotary_fraction, "sliding_window": window}


def _placements(architecture: Architecture, config: Mapping[str, Any]) -> list[Placement]:
    shared = SHARED_SUFFIX if any(architecture.key_value_heads(n) < n for n in architecture.heads_per_layer) else ""
    qkv, gate_up = transposed(in_turn(HEADS_SIDE_BY_SIDE, 1)), transposed(in_turn(SAME, 1))
    placed = [place for place in llama_placements(architecture, config) if not place.tensor.endswith(_APART)]
    for i in range(architecture.n_layers):
        heads = tuple(f"layers.{i}.attention.W_{end}" for end in ("Q", f"K{shared}", f"V{shared}"))
        maps = tuple(f"layers.{i}.feed_forward.W_{end}" for end in ("gate", "in"))
        placed += [
            Placement(f"model.layers.{i}.self_attn.qkv_proj.weight", qkv, heads),
            Placement(f"model.layers.{i}.mlp.gate_up_proj.weight", gate_up, maps),
        ]
    return placed


# Published folders come with code of their own, which computes the same as the library's.
PHI3 = llama_family("phi3", "Phi3ForCausalLM", _fields, _config, _placements, defines=("auto_map",))
