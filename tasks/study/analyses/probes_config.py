"""The stage `probes`: what linear probes read from the outputs of heads."""

from pydantic import BaseModel, Field

from headstream.tasks.study.field_types import Count, Seed
from headstream.tasks.study.stage import Cost, Stage


class ProbesConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The [analysis.probes] section of a study: the tokens that probes of heads are trained and tested on."""

    train_tokens: Count = Field(16384, description="Tokens on which probes are trained.")
    selection_tokens: Count = Field(8192, description="Tokens of other documents on which the best head is chosen.")
    test_tokens: Count = Field(8192, description="Tokens of further documents on which probes are tested.")
    control_draws: int = Field(
        8,
        ge=8,  # with fewer, the error could not be estimated
        le=1000,
        description="Draws of control labels; a probe's accuracy is compared with the mean of theirs.",
    )
    penalty: float = Field(1e-3, gt=0, description="Penalty on the sum of a probe's squared weights, in nats.")
    max_steps: Count = Field(200, description="Maximum number of steps of the solver that fits a probe.")
    seed: Seed = Field(0, description="Seed of the control labels, together with the names of the model and the task.")


STAGE = Stage(
    "probes",
    work="headstream.tasks.measuring.probes:measure_probes",
    reads=("model", "tokens"),
    writes=("probe_tasks", "probes"),
    config=ProbesConfig,
    description="Linear probes of the outputs of heads.",
    cost=Cost(seconds=8.0, passes=2500, large_passes=375),
    units="headstream.tasks.study.work_units:probes",
    large_fields={"train_tokens": 2048, "selection_tokens": 1024, "test_tokens": 1024, "max_steps": 100},
    trial_fields={"train_tokens": 300, "selection_tokens": 200, "test_tokens": 200, "max_steps": 5},
    order=7,
)
