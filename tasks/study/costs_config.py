"""The [costs] section of a study: the sizes at which time and work are measured."""

from typing import Annotated, Self

from pydantic import BaseModel, Field, model_validator

from headstream.models.architecture_config import MAX_CONTEXT, MAX_LAYER_HEADS, MAX_WIDTH
from headstream.tasks.study.field_types import ListOf

Length = Annotated[int, Field(ge=2, le=MAX_CONTEXT)]
Width = Annotated[int, Field(gt=0, le=MAX_WIDTH)]
_HeadCount = Annotated[int, Field(gt=0, le=MAX_LAYER_HEADS)]
Axis = Field(max_length=32)


class CostsConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The [costs] section of a study: the sizes at which models of one layer are timed; empty for no timing."""

    n_ctx: Annotated[ListOf[Length], Axis] = Field(
        (), description="Sequence lengths to time, in tokens, ascending: one head, full and local attention."
    )
    d_model: Annotated[ListOf[Width], Axis] = Field(
        (), description="Widths of the residual stream to time, ascending: one head, base_n_ctx tokens."
    )
    n_heads: Annotated[ListOf[_HeadCount], Axis] = Field(
        (), description="Head counts to time, ascending: base_d_model wide, at each length of heads_n_ctx."
    )
    heads_n_ctx: Annotated[ListOf[Length], Axis] = Field(
        (128, 512, 2048),
        description="Sequence lengths while n_heads varies, in tokens, ascending: longer ones make heads cost more.",
    )
    max_full_n_ctx: Length = Field(4096, description="Longest sequence, in tokens, on which full attention is timed.")
    attention_window: int = Field(
        128, ge=1, le=MAX_CONTEXT, description="Keys that a query sees in local attention, its own included."
    )
    narrow_d_model: Width = Field(
        16, description="Width of the residual stream while n_ctx varies: narrow, so that attention dominates the work."
    )
    base_n_ctx: Length = Field(128, description="Sequence length while d_model varies, in tokens.")
    base_d_model: Width = Field(256, description="Width of the residual stream while n_heads varies.")
    repeats: int = Field(
        15, ge=1, le=10_000, description="Number of times that each forward and backward pass is timed."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for axis in ("n_ctx", "d_model", "n_heads", "heads_n_ctx"):
            sizes = getattr(self, axis)
            if list(sizes) != sorted(set(sizes)):
                raise ValueError(
                    f"{axis} must ascend, got {', '.join(map(str, sizes))}. List each size once, in order."
                )
        if self.n_ctx and self.n_ctx[0] < self.attention_window:
            raise ValueError(
                f"n_ctx must be at least attention_window={self.attention_window}, got {self.n_ctx[0]}."
                " Leave it out, or choose a smaller window."
            )
        for n_heads in self.n_heads:
            if self.base_d_model % n_heads:
                raise ValueError(
                    f"n_heads must divide base_d_model={self.base_d_model}, got {n_heads}. Choose other head counts."
                )
        return self
