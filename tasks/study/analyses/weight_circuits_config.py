"""The stage `weight-circuits`: QK and OV circuits and composition, from weights alone."""

from pydantic import BaseModel, Field

from headstream.tasks.study.field_types import COMPOSITION_LEVEL, MAX_COUNT, AtLeastTwo, Count, Seed
from headstream.tasks.study.stage import Cost, Stage


class WeightCircuitsConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The [analysis.weight_circuits] section of a study: comparisons for the weights, and the level of significance."""

    level: float = Field(
        COMPOSITION_LEVEL,
        gt=0,
        lt=1,
        description="Probability that a model without composition has a significant pair of heads.",
    )
    rotations: AtLeastTwo = Field(
        50, description="Random rotations of each head's output that check the null of composition scores."
    )
    top_skip_trigrams: Count = Field(
        20, description="Skip-trigrams kept for each head, those with the largest effect first."
    )
    min_count: Count = Field(
        50, description="Minimum occurrences of a skip-trigram's tokens, and of its source before its destination."
    )
    statistics_tokens: int = Field(
        1_000_000, ge=1, le=10**12, description="Training tokens in which the corpus's own skip-trigrams are counted."
    )
    copying_tokens: Count = Field(4096, description="Most frequent tokens on which copying is tested.")
    evaluator_sequences: Count = Field(
        10, description="Sequences of random tokens on which heads are scored for copying."
    )
    matching_pairs: int = Field(
        1024,
        ge=0,
        le=MAX_COUNT,
        description="Pairs of heads whose K-composed circuit is tested for matching: those that K-compose most, and"
        " each head with its best writer.",
    )
    persistence_windows: Count = Field(
        16, description="Validation sequences on which the persistence of heads' outputs is measured."
    )
    seed: Seed = Field(
        0, description="Seed of the random rotations, and of the random tokens on which copying is scored."
    )


STAGE = Stage(
    "weight-circuits",
    work="headstream.tasks.measuring.weight_circuits:measure_weight_circuits",
    reads=("model", "tokens"),
    writes=("compositions", "eigenvalues", "heads", "skip_trigrams", "subspaces"),
    config=WeightCircuitsConfig,
    description="QK and OV circuits and composition, from weights alone.",
    cost=Cost(seconds=1.0, passes=500, large_passes=650),
    units="headstream.tasks.study.work_units:weight_circuits",
    large_fields={"copying_tokens": 1024, "evaluator_sequences": 4, "persistence_windows": 4, "rotations": 20},
    trial_fields={"statistics_tokens": 2000, "rotations": 3},
    order=2,
)
