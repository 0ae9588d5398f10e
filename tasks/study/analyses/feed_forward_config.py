"""The stage `feed-forward`: how much the loss depends on feed-forward layers."""

from pydantic import BaseModel, Field

from headstream.tasks.study.field_types import Count
from headstream.tasks.study.stage import Cost, Stage


class FeedForwardConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis.feed_forward] section of a study: on how much text feed-forward neurons are ablated."""

    windows: Count = Field(
        64, description="Validation sequences on which the effects of ablating feed-forward layers are measured."
    )
    reference_windows: Count = Field(
        64, description="Other validation sequences, whose mean activations replace those of ablated neurons."
    )
    max_reruns: Count = Field(
        2048,
        description="Groups of neurons in all layers, times sequences, at most: of a deeper model, fewer sequences are"
        " used, though 8 (or all) at least.",
    )
    n_groups: Count = Field(8, description="Groups into which each layer's neurons are cut, to be ablated one by one.")


STAGE = Stage(
    "feed-forward",
    work="headstream.tasks.measuring.feed_forward:measure_feed_forward",
    reads=("model", "tokens"),
    writes=("feed_forward_ablations",),
    config=FeedForwardConfig,
    description="How much the loss depends on feed-forward layers.",
    cost=Cost(seconds=0.1, passes=1700, reduced_passes=800),
    order=8,
)
