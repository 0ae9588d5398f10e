"""OLMo, a Llama with LayerNorm that has no weights, and OLMo 2, with norms of what sublayers write and of all queries.

Source: Groeneveld et al. 2024, OLMo Team 2024; transformers' OlmoForCausalLM and Olmo2ForCausalLM.
"""

from collections.abc import Mapping
from typing import Any

from headstream.models.architecture import LAYERNORM_EPS, Architecture
from headstream.tasks.importing.llama_families import llama_config, llama_family, llama_fields, llama_placements
from headstream.tasks.importing.placements import Placement
from headstream.tasks.importing.settings import Settings

_FINAL_NORM = "model.norm.weight"
_NORMS = {"post_attention_layernorm": "attention_out_norm", "post_feedforward_layernorm": "feed_forward_out_norm"}


def _olmo_fields(settings: Settings) -> dict[str, Any]:
    settings.must_be("clip_qkv", (None,), "limit for queries, keys and values")
    norms = {"normalization": "layernorm", "norm_epsilon": LAYERNORM_EPS}
    return llama_fields(settings) | norms | {"biases": settings.flag("attention_bias", False)}


def _olmo_config(architecture: Architecture) -> dict[str, Any]:
    shared = {name: value for name, value in llama_config(architecture).items() if name != "rms_norm_eps"}
    return shared | {"attention_bias": architecture.biases, "clip_qkv": None}


def _olmo_placements(architecture: Architecture, config: Mapping[str, Any]) -> list[Placement]:
    return [place for place in llama_placements(architecture, config, {}) if place.tensor != _FINAL_NORM]


def _olmo2_fields(settings: Settings) -> dict[str, Any]:
    norms = {"normalization_place": "output", "qk_normalization": True, "qk_normalization_over": "layer"}
    return llama_fields(settings, epsilon=1e-5) | norms | {"biases": settings.flag("attention_bias", False)}


def _olmo2_config(architecture: Architecture) -> dict[str, Any]:
    return llama_config(architecture) | {"attention_bias": architecture.biases}


def _olmo2_placements(architecture: Architecture, config: Mapping[str, Any]) -> list[Placement]:
    return llama_placements(architecture, config, _NORMS)


OLMO = llama_family("olmo", "OlmoForCausalLM", _olmo_fields, _olmo_config, _olmo_placements)
OLMO2 = llama_family("olmo2", "Olmo2ForCausalLM", _olmo2_fields, _olmo2_config, _olmo2_placements)
