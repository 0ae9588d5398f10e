"""The stage `redundancy`: heads that do the same as others."""

from pydantic import BaseModel, Field

from headstream.tasks.study.field_types import MAX_COUNT, MAX_RERUNS, AtLeastTwo, Count
from headstream.tasks.study.stage import Cost, Stage


class RedundancyConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The [analysis.redundancy] section of a study: the amount of text on which heads are compared."""

    windows: AtLeastTwo = Field(64, description="Validation sequences on which heads are compared.")
    reference_windows: AtLeastTwo = Field(
        64, description="Other validation sequences, whose mean outputs replace those of ablated heads."
    )
    max_reruns: Count = Field(1024, description=MAX_RERUNS)
    max_pairs: int = Field(
        128,
        ge=0,
        le=MAX_COUNT,
        description="Maximum number of pairs of heads that are ablated together, the most similar first.",
    )
    pattern_queries: Count = Field(
        64, description="Queries whose attention is kept, to compare heads with those of models of other seeds."
    )
    cluster_distance: float = Field(
        0.5,
        gt=0,
        description="Mean Jensen-Shannon distance up to which heads form a cluster; heads that share 3/4 of their"
        " attention are at most 0.5 apart.",
    )


STAGE = Stage(
    "redundancy",
    work="headstream.tasks.measuring.redundancy:measure_redundancy",
    reads=("model", "tokens"),
    writes=("head_clusters", "head_patterns", "head_similarity"),
    config=RedundancyConfig,
    description="Heads that do the same as others.",
    cost=Cost(seconds=0.1, passes=3500, large_passes=800),
    units="headstream.tasks.study.work_units:redundancy",
    large_fields={"windows": 4, "reference_windows": 4, "max_pairs": 64},
    trial_fields={"windows": 3, "reference_windows": 3},
    order=6,
)
