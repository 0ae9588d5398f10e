"""The [costs] section of a study: at which sizes time and work are measured."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from models.architecture_config import LONGEST, MOST_HEADS, WIDEST

AXES = ("n_ctx", "d_model", "n_heads")
MOST_SIZES = 32  # of an axis

Length = Annotated[int, Field(ge=2, le=LONGEST)]
Width = Annotated[int, Field(gt=0, le=WIDEST)]
HeadCount = Annotated[int, Field(gt=0, le=MOST_HEADS)]


class CostsConfig(BaseModel):
    """The [costs] section of a study: the sizes at which models of one layer are timed; none are without sizes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    n_ctx: tuple[Length, ...] = Field(
        (),
        max_length=MOST_SIZES,
        description="Positions, ascending: one head, narrow_d_model wide, with full and with local attention.",
    )
    d_model: tuple[Width, ...] = Field(
        (), max_length=MOST_SIZES, description="Widths, ascending: one head, base_n_ctx positions."
    )
    n_heads: tuple[HeadCount, ...] = Field(
        (), max_length=MOST_SIZES, description="Head counts, ascending: base_d_model wide, base_n_ctx positions."
    )
    max_full_n_ctx: Length = Field(4096, description="Positions up to which full attention is timed.")
    attention_window: int = Field(128, ge=1, le=LONGEST, description="Keys that local attention sees.")
    narrow_d_model: Width = Field(16, description="Width while n_ctx varies: narrow, so that attention is most.")
    base_n_ctx: Length = Field(128, description="Positions while d_model or n_heads varies.")
    base_d_model: Width = Field(256, description="Width while n_heads varies.")
    repeats: int = Field(15, ge=1, le=10_000, description="How often each pass is timed.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for axis, sizes in self.sizes.items():
            if list(sizes) != sorted(set(sizes)):
                raise ValueError(
                    f"{axis} must ascend, got {', '.join(map(str, sizes))}. List each size once, in order."
                )
        if self.n_ctx and self.n_ctx[0] < self.attention_window:
            raise ValueError(
                f"n_ctx must be at least attention_window={self.attention_window}, got {self.n_ctx[0]}."
                " Leave it out, or choose a smaller window."
            )
        if odd := [n for n in self.n_heads if self.base_d_model % n]:
            raise ValueError(
                f"n_heads must divide base_d_model={self.base_d_model}, got {odd[0]}. Choose other head counts."
            )
        return self

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """What there is to measure, by what varies; empty if nothing is."""
        return {axis: getattr(self, axis) for axis in AXES if getattr(self, axis)}
