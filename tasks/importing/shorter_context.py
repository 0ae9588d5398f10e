"""A model from elsewhere that reads shorter sequences than it could: its architecture, and its weights."""

from typing import Any

from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.tasks.errors import UserError
from headstream.tasks.study.imported_model_config import DEFAULT_N_CTX


def with_context(own: Architecture, n_ctx: int | None) -> Architecture:
    """The architecture with the n_ctx that it is measured on, and no window that is longer.

    Raises:
        UserError: the model can't read so much.
    """
    if n_ctx is not None and n_ctx > own.n_ctx:
        raise UserError(f"n_ctx must be at most what the model can read, {own.n_ctx:,}, got {n_ctx:,}. Lower it.")
    n_ctx = n_ctx or min(own.n_ctx, DEFAULT_N_CTX)
    changed: dict[str, Any] = {"n_ctx": n_ctx}
    if own.attention == "local" and own.visible_distances.stop >= n_ctx:
        changed["attention_window"] = n_ctx
        if own.windowed_rotary_base is None:
            changed |= {"attention": "full", "attention_window": None, "windowed_layers": None}
    return Architecture.model_validate(own.model_dump() | changed)


def shortened(weights: dict[str, Tensor], architecture: Architecture) -> dict[str, Tensor]:
    """Weights of a model that reads at most n_ctx positions: learned positions beyond are left out."""
    n_ctx, kept = architecture.n_ctx, dict(weights)
    for name, weight in weights.items():
        if name.endswith("W_pos"):
            kept[name] = weight[:n_ctx].contiguous()
        elif name.endswith("position_bias"):
            kept[name] = weight[:, :n_ctx].contiguous()
    return kept
