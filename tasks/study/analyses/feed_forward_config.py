"""The stage `feed-forward`: how much the loss depends on feed-forward layers."""

from pydantic import BaseModel, Field

from headstream.tasks.study.field_types import Count
from headstream.tasks.study.stage import Cost, Stage


class FeedForwardConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The [analysis.feed_forward] section of a study: the amount of text on which feed-forward neurons are ablated."""

    windows: Count = Field(
        64, description="Validation sequences on which the effects of ablating feed-forward layers are measured."
    )
    reference_windows: Count = Field(
        64, description="Other validation sequences, whose mean activations replace those of ablated neurons."
    )
    max_reruns: Count = Field(
        2048,
        description="Maximum of groups of neurons in all layers times sequences: for a deeper model, fewer sequences"
        " are used, but at least 8 (or all).",
    )
    n_groups: Count = Field(8, description="Groups of each layer's neurons, which are ablated one by one.")


STAGE = Stage(
    "feed-forward",
    work="headstream.tasks.measuring.feed_forward:measure_feed_forward",
    reads=("model", "tokens"),
    writes=("feed_forward_ablations",),
    config=FeedForwardConfig,
    description="Effects of ablating feed-forward neurons on the loss.",
    cost=Cost(seconds=0.1, passes=1700, large_passes=800),
    units="headstream.tasks.study.work_units:feed_forward",
    large_fields={"windows": 4, "reference_windows": 8, "n_groups": 2},
    trial_fields={"windows": 3, "reference_windows": 3},
    order=8,
)
