"""Rotary positions by a config of transformers: their rates, stretched or not.

Source: transformers' modeling_rope_utils.py; of llama3, `apply_scaling` of Meta's llama-models.
"""

from collections.abc import Mapping
from typing import Any

from headstream.tasks.importing.reference.maths import rates_of, stretched
from headstream.tasks.importing.reference.said_settings import UndefinedSettingError


def rope_rates(config: Mapping[str, Any], n_turned: int) -> list[float]:
    """Radians a position by which each pair of dimensions is turned.

    Raises:
        UndefinedSettingError: they are changed in a way that is not defined here.
    """
    entries = config.get("rope_scaling") or config.get("rope_parameters") or {}
    base = entries.get("rope_theta") or config.get("rope_theta") or 10_000.0
    rates = rates_of(base, n_turned)
    kind = entries.get("rope_type") or entries.get("type") or "default"
    for name, value in entries.items():
        if isinstance(value, Mapping):
            raise UndefinedSettingError(f"rotary positions for {name} alone")
    match kind:
        case "default":
            return rates
        case "linear":
            return [stretched(rate, entries["factor"], None) for rate in rates]
        case "llama3":
            n = config.get("original_max_position_embeddings") or entries.get("original_max_position_embeddings")
            n = n or config["max_position_embeddings"]
            wavelengths = (n / entries["high_freq_factor"], n / entries["low_freq_factor"])
            return [stretched(rate, entries["factor"], wavelengths) for rate in rates]
    raise UndefinedSettingError(f"rope_type = {kind!r}")
