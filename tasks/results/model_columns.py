"""The columns of the table `models`."""

from collections.abc import Mapping
from typing import Any

from headstream.models.architecture import Architecture
from headstream.tasks.results.tables import table_schema


def model_row(known: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `models`: of what is known of a model, that which has a column, and None in all others."""
    return {name: known.get(name) for name in table_schema("models").names}


def architecture_columns(architecture: Architecture) -> dict[str, object]:
    """The columns of `models` that an architecture decides; None where a column isn't about it."""
    a = architecture
    rotary, normalised = a.positions == "rotary", a.normalization != "none"
    return {
        **a.model_dump(),
        **({} if rotary else dict.fromkeys(name for name in type(a).model_fields if name.startswith("rotary_"))),
        "norm_epsilon": a.epsilon_of(a.normalization) if normalised else None,
        "n_heads": a.n_heads if isinstance(a.n_heads, int) else None,
        "heads_per_layer": list(a.heads_per_layer),
        "total_heads": sum(a.heads_per_layer),
        "d_head": a.head_width,
        "d_value": a.value_width,
        "d_mlp": a.mlp_width or None,
        "attention_window": len(a.visible_distances) if a.windowed else None,
        "stride": a.visible_distances.step if a.windowed else None,
        "top_k": a.kept_keys,
        "score_scale": a.query_scale,
    }
