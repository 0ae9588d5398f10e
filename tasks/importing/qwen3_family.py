"""Qwen3: a Llama whose queries and keys are normalised head by head.

Source: Yang et al. 2025, section 2; transformers' Qwen3ForCausalLM.
"""

from typing import Any

from headstream.models.architecture import Architecture
from headstream.tasks.importing.llama_families import (
    llama_config,
    llama_family,
    llama_fields,
    windows_of_qwen,
    with_windows_of_qwen,
)
from headstream.tasks.importing.settings import Settings


def _fields(settings: Settings) -> dict[str, Any]:
    biases = settings.flag("attention_bias", False)
    fields = llama_fields(settings, d_head=128, unsaid_groups=32) | {"qk_normalization": True, "biases": biases}
    return with_windows_of_qwen(fields, settings)


def _config(architecture: Architecture) -> dict[str, Any]:
    return llama_config(architecture) | {"attention_bias": architecture.biases} | windows_of_qwen(architecture)


QWEN3 = llama_family("qwen3", "Qwen3ForCausalLM", _fields, _config)
