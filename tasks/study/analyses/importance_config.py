"""The stage `importance`: ablations of heads, and scores that predict their effects."""

from typing import Literal, get_args

from pydantic import BaseModel, Field

from headstream.tasks.study.field_types import MAX_COUNT, MAX_RERUNS, AtLeastTwo, Count, ListOf, Seed
from headstream.tasks.study.stage import Cost, Stage

ReplacementMethod = Literal["zero", "mean", "position_mean", "resample"]
Scope = Literal["full", "frozen_patterns"]


class ImportanceConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The [analysis.importance] section of a study: the amount of text on which heads are ablated and scored."""

    windows: AtLeastTwo = Field(
        64, description="Validation sequences on which the effects of ablating heads are measured."
    )
    reference_windows: AtLeastTwo = Field(
        64, description="Other validation sequences, whose mean outputs replace those of ablated heads."
    )
    max_reruns: Count = Field(1024, description=MAX_RERUNS)
    replacements: ListOf[ReplacementMethod] = Field(
        get_args(ReplacementMethod),
        min_length=1,
        max_length=len(get_args(ReplacementMethod)),
        description="Replacements of an ablated head's output: zero, its mean on other text, its mean there at the same"
        " position, or its output on other sequences.",
    )
    scopes: ListOf[Scope] = Field(
        get_args(Scope),
        min_length=1,
        max_length=len(get_args(Scope)),
        description="Recomputed by later layers when a head is ablated: everything, or all but attention patterns.",
    )
    others: bool = Field(
        True, description="Also keep each head alone in its layer, with all others replaced by zero or their mean."
    )
    resamples: int = Field(
        5,
        ge=5,
        le=MAX_COUNT,
        description="Other sequences whose outputs replace an ablated head's, one sequence at a time.",
    )
    seed: Seed = Field(0, description="Seed of the choice of replacement sequences.")


STAGE = Stage(
    "importance",
    work="headstream.tasks.measuring.importance:measure_importance",
    reads=("model", "tokens"),
    writes=("ablations", "importance"),
    config=ImportanceConfig,
    description="Ablations of heads, and scores that predict their effects.",
    cost=Cost(seconds=0.1, passes=7000, large_passes=5600),
    units="headstream.tasks.study.work_units:importance",
    large_fields={
        "windows": 32,
        "max_reruns": 270 * 32,
        "reference_windows": 8,
        "replacements": ("mean",),
        "scopes": ("full",),
        "others": False,
    },
    trial_fields={"windows": 3, "reference_windows": 3},
    order=4,
)
