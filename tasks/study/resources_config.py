"""The fields `runner` and [resources] of a study: the place of its work, and each model's share of a machine."""

from typing import Literal

from pydantic import BaseModel, Field

Runner = Literal["threads", "ray"]


class ResourcesConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """A model's share of a machine: it decides where and when the model is made, never the result."""

    jobs: int | None = Field(
        None, ge=1, le=1024, description="Models at once where the runner is threads; default: one per core."
    )
    cpus: float = Field(1.0, gt=0, le=1024, description="CPU cores that Ray reserves for each model.")
    gpus: float = Field(1.0, gt=0, le=1, description="Fraction of a GPU that a model takes while it is on one.")
