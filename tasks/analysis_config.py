"""The [analysis] section of a study: how much is measured on every model, one part a stage."""

from pydantic import BaseModel, ConfigDict, Field


class BehaviourConfig(BaseModel):
    """The [analysis.behaviour] section of a study: on how much text and on how many repeats models are measured."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    loss_windows: int = Field(256, ge=1, description="Validation sequences that losses are averaged over.")
    pattern_windows: int = Field(
        64, ge=1, description="How many of these sequences attention patterns are measured on."
    )
    fixed_period_sequences: int = Field(10, ge=1, description="Sequences for prefix matching.")
    random_period_sequences: int = Field(
        64, ge=1, description="Sequences of random period, for induction and the gain from repeats."
    )
    passage_tokens: int = Field(
        48, ge=2, description="Tokens, BOS included, of the passage whose attention is kept whole."
    )
    seed: int = Field(0, ge=0, description="Of the random tokens that are repeated.")


class CircuitsConfig(BaseModel):
    """How circuits are found, on how much text, and what counts as significant."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: float = Field(0.01, gt=0, lt=1, description="Chance that an uncomposed model has a significant pair.")
    rotations: int = Field(50, ge=2, description="Random rotations of each writer's output for the empirical null.")
    top_skip_trigrams: int = Field(20, ge=1, description="Skip-trigrams kept of each head.")
    min_count: int = Field(
        50, ge=1, description="How often a skip-trigram's tokens, and its source before its destination, must come."
    )
    statistics_tokens: int = Field(
        1_000_000, ge=1, description="Training tokens in which the corpus' own skip-trigrams are counted."
    )
    copying_tokens: int = Field(4096, ge=1, description="Most frequent tokens of which copying is asked.")
    evaluator_sequences: int = Field(10, ge=1, description="Random sequences for the copying evaluator.")
    persistence_windows: int = Field(16, ge=1, description="Validation sequences that persistence is measured on.")
    seed: int = Field(0, ge=0, description="Of the rotations and the random tokens.")
    path_windows: int = Field(
        32, ge=1, description="Validation sequences for path terms, score terms and causal checks."
    )
    bigram_windows: int = Field(
        256,
        ge=1,
        description="Validation sequences for what the heads add on average after a token, the above included.",
    )
    bigram_tokens: int = Field(
        50_000_000, ge=2, description="Training tokens whose bigrams are counted, from the start."
    )
    bigram_sources: int = Field(
        4096, ge=1, description="Most frequent tokens whose bigrams the direct path is held against."
    )
    bigram_samples: int = Field(300, ge=0, description="Most frequent bigrams kept for plots.")
    max_pairs: int = Field(
        128, ge=0, description="Head pairs with a causal check, and virtual heads with a loss effect of their own."
    )


class AnalysisConfig(BaseModel):
    """What is measured on every model; a part is what one stage reads, so a change runs that stage alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    behaviour: BehaviourConfig = Field(BehaviourConfig(), description="Losses and attention patterns.")
    circuits: CircuitsConfig = Field(CircuitsConfig(), description="Paths, QK and OV circuits, composition.")
