"""The stage `activation-circuits`: paths, bigrams and causal checks, on text."""

from pydantic import BaseModel, Field

from headstream.tasks.study.field_types import COMPOSITION_LEVEL, MAX_COUNT, Count, Seed
from headstream.tasks.study.stage import Cost, Stage


class ActivationCircuitsConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The [analysis.activation_circuits] section of a study: the amount of text on which circuits are traced."""

    path_windows: Count = Field(
        32, description="Validation sequences for path terms, attention-score terms and causal checks."
    )
    bigram_windows: Count = Field(
        256, description="Training sequences from which heads' mean output after each token is taken."
    )
    bigram_tokens: int = Field(
        50_000_000, ge=2, le=10**12, description="Training tokens, from the first on, whose bigrams are counted."
    )
    bigram_sources: Count = Field(
        4096, description="Most frequent tokens whose bigrams the direct path is compared with."
    )
    bigram_samples: int = Field(300, ge=0, le=MAX_COUNT, description="Most frequent bigrams that are kept for plots.")
    max_pairs: int = Field(
        128,
        ge=0,
        le=MAX_COUNT,
        description="Maximum number of pairs of heads checked causally, not counting those of induction circuits, and"
        " of virtual heads ablated.",
    )
    max_circuits: int = Field(
        64,
        ge=0,
        le=MAX_COUNT,
        description="Maximum number of induction circuits checked causally, starting with the heads that attend most to"
        " what followed earlier copies.",
    )
    max_sources: Count = Field(
        24,
        description="Earlier heads and feed-forward layers shown separately as sources of a head's queries, and as many"
        " of its keys: those with the largest share of its scores.",
    )
    level: float = Field(
        COMPOSITION_LEVEL,
        gt=0,
        lt=1,
        description="Probability that a model without composition has an induction circuit; the level of"
        " [analysis.weight_circuits] is for all pairs of heads.",
    )
    fixed_period_sequences: Count = Field(
        10, description="Sequences of random tokens repeated with a fixed period, for causal checks."
    )
    random_period_sequences: Count = Field(
        64, description="Sequences of random tokens repeated with a random period, for causal checks."
    )
    seed: Seed = Field(0, description="Seed of the random tokens that are repeated in causal checks.")


STAGE = Stage(
    "activation-circuits",
    work="headstream.tasks.measuring.activation_circuits:measure_activation_circuits",
    reads=("model", "tokens"),
    writes=(
        "bigram_samples",
        "bigrams",
        "causal_checks",
        "identities",
        "joint_checks",
        "path_terms",
        "score_terms",
        "virtual_heads",
    ),
    config=ActivationCircuitsConfig,
    description="Paths, bigrams and causal checks, on text.",
    cost=Cost(seconds=1.0, passes=2500, large_passes=1100),
    units="headstream.tasks.study.work_units:activation_circuits",
    large_fields={
        "path_windows": 2,
        "bigram_windows": 64,
        "bigram_sources": 2048,
        "max_pairs": 32,
        "max_circuits": 24,
        "max_sources": 16,
        "fixed_period_sequences": 4,
        "random_period_sequences": 8,
    },
    trial_fields={"path_windows": 2, "bigram_windows": 4},
    order=3,
)
