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


class AnalysisConfig(BaseModel):
    """What is measured on every model; a part is what one stage reads, so a change runs that stage alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    behaviour: BehaviourConfig = Field(BehaviourConfig(), description="Losses and attention patterns.")
