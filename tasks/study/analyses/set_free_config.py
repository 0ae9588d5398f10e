"""The stage `set-free`: what models do at each checkpoint without the interventions that act on them there."""

from pydantic import BaseModel, Field

from headstream.tasks.study.field_types import AtLeastTwo, Count, Seed
from headstream.tasks.study.stage import Cost, Stage


class SetFreeConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The [analysis.set_free] section of a study: the amount of text and of repeats that models are set free on."""

    loss_windows: Count = Field(256, description="Validation sequences over which losses are averaged.")
    random_period_sequences: AtLeastTwo = Field(
        64,
        description="Sequences of random tokens repeated with a random period, for induction scores and repeat_gain.",
    )
    seed: Seed = Field(0, description="Seed of the random tokens that are repeated.")


STAGE = Stage(
    "set-free",
    work="headstream.tasks.measuring.set_free:measure_set_free",
    reads=("model", "tokens"),
    writes=("set_free", "set_free_heads"),
    config=SetFreeConfig,
    description="Models without the interventions under which they were trained.",
    cost=Cost(seconds=2.0, passes=120, large_passes=150, each_checkpoint=True),
    measures=("silenced", "changed"),
    trial_fields={"loss_windows": 3, "random_period_sequences": 2},
    order=10,
)
