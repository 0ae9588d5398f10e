"""The stage `behaviour`: losses, attention patterns and induction scores, at every checkpoint."""

from pydantic import BaseModel, Field

from headstream.tasks.study.field_types import AtLeastTwo, Count, Seed
from headstream.tasks.study.stage import Cost, Stage


class BehaviourConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The [analysis.behaviour] section of a study: the amount of text and of repeats that models are measured on."""

    loss_windows: Count = Field(256, description="Validation sequences over which losses are averaged.")
    pattern_windows: Count = Field(
        64, description="Sequences, out of those for losses, on which attention patterns are measured."
    )
    fixed_period_sequences: Count = Field(
        10, description="Sequences of random tokens repeated with a fixed period, for prefix matching."
    )
    random_period_sequences: AtLeastTwo = Field(
        64,
        description="Sequences of random tokens repeated with a random period, for induction scores and repeat_gain.",
    )
    passage_tokens: int = Field(
        48, ge=2, le=512, description="Length in tokens, BOS included, of the passage whose attention is kept in full."
    )
    seed: Seed = Field(0, description="Seed of the random tokens that are repeated.")


STAGE = Stage(
    "behaviour",
    work="headstream.tasks.measuring.behaviour:measure_behaviour",
    reads=("model", "tokens"),
    writes=(
        "attention_aggregates",
        "attention_samples",
        "evaluations",
        "gate_activity",
        "heads",
        "position_losses",
        "repeat_losses",
    ),
    config=BehaviourConfig,
    description="Losses, attention patterns and induction scores.",
    measures=("plain", "silenced", "changed"),
    cost=Cost(seconds=3.0, passes=250, large_passes=320, each_checkpoint=True),
    units="headstream.tasks.study.work_units:behaviour",
    large_fields={
        "loss_windows": 64,
        "pattern_windows": 24,
        "random_period_sequences": 24,
        "fixed_period_sequences": 10,
        "passage_tokens": 24,
    },
    trial_fields={"loss_windows": 3, "pattern_windows": 2, "random_period_sequences": 2, "passage_tokens": 6},
    order=1,
)
