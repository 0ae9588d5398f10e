"""The [analysis] section of a study: how much is measured on every model, one part a stage."""

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Stage = Literal[
    "behaviour",
    "weight-circuits",
    "activation-circuits",
    "importance",
    "pruning",
    "redundancy",
    "probes",
    "feed-forward",
]
MOST = 100_000  # of anything: more would fill the memory, and tell no more


class BehaviourConfig(BaseModel):
    """The [analysis.behaviour] section of a study: on how much text and on how many repeats models are measured."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    loss_windows: int = Field(256, ge=1, le=MOST, description="Validation sequences that losses are averaged over.")
    pattern_windows: int = Field(
        64, ge=1, le=MOST, description="How many of these sequences attention patterns are measured on."
    )
    fixed_period_sequences: int = Field(10, ge=1, le=MOST, description="Sequences for prefix matching.")
    random_period_sequences: int = Field(
        64, ge=1, le=MOST, description="Sequences of random period, for induction and the gain from repeats."
    )
    passage_tokens: int = Field(
        48, ge=2, le=512, description="Tokens, BOS included, of the passage whose attention is kept whole."
    )
    seed: int = Field(0, ge=0, lt=1 << 31, description="Of the random tokens that are repeated.")


class WeightCircuitsConfig(BaseModel):
    """The [analysis.weight_circuits] section of a study: what weights are held against, and what is significant."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    level: float = Field(0.01, gt=0, lt=1, description="Chance that an uncomposed model has a significant pair.")
    rotations: int = Field(
        50, ge=2, le=MOST, description="Random rotations of each writer's output for the empirical null."
    )
    top_skip_trigrams: int = Field(20, ge=1, le=MOST, description="Skip-trigrams kept of each head.")
    min_count: int = Field(
        50,
        ge=1,
        le=MOST,
        description="How often a skip-trigram's tokens, and its source before its destination, must come.",
    )
    statistics_tokens: int = Field(
        1_000_000, ge=1, le=10**12, description="Training tokens in which the corpus' own skip-trigrams are counted."
    )
    copying_tokens: int = Field(4096, ge=1, le=MOST, description="Most frequent tokens of which copying is asked.")
    evaluator_sequences: int = Field(10, ge=1, le=MOST, description="Random sequences for the copying evaluator.")
    persistence_windows: int = Field(
        16, ge=1, le=MOST, description="Validation sequences that persistence is measured on."
    )
    seed: int = Field(0, ge=0, lt=1 << 31, description="Of the rotations and the random tokens.")


class ActivationCircuitsConfig(BaseModel):
    """The [analysis.activation_circuits] section of a study: on how much text circuits are followed."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    path_windows: int = Field(
        32, ge=1, le=MOST, description="Validation sequences for path terms, score terms and causal checks."
    )
    bigram_windows: int = Field(
        256,
        ge=1,
        le=MOST,
        description="Validation sequences for what the heads add on average after a token, the above included.",
    )
    bigram_tokens: int = Field(
        50_000_000, ge=2, le=10**12, description="Training tokens whose bigrams are counted, from the start."
    )
    bigram_sources: int = Field(
        4096, ge=1, le=MOST, description="Most frequent tokens whose bigrams the direct path is held against."
    )
    bigram_samples: int = Field(300, ge=0, le=MOST, description="Most frequent bigrams kept for plots.")
    max_pairs: int = Field(
        128,
        ge=0,
        le=MOST,
        description="Head pairs with a causal check, and virtual heads with a loss effect of their own.",
    )
    fixed_period_sequences: int = Field(
        10, ge=1, le=MOST, description="Sequences of repeated random tokens for prefix matching in causal checks."
    )
    random_period_sequences: int = Field(
        64, ge=1, le=MOST, description="Sequences of random period for induction in causal checks."
    )
    seed: int = Field(0, ge=0, lt=1 << 31, description="Of the random tokens that are repeated.")


class ImportanceConfig(BaseModel):
    """The [analysis.importance] section of a study: on how much text heads are ablated and scored."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    windows: int = Field(64, ge=2, le=MOST, description="Validation sequences that effects are measured on.")
    reference_windows: int = Field(
        64, ge=2, le=MOST, description="Other validation sequences, of which means are taken."
    )
    resamples: int = Field(
        5, ge=5, le=MOST, description="How many other sequences' outputs replace a head's, one at a time."
    )
    bootstraps: int = Field(2000, ge=100, le=MOST, description="Resampled sets of sequences for confidence intervals.")
    seed: int = Field(0, ge=0, lt=1 << 31, description="Of the resampling.")


class PruningConfig(BaseModel):
    """The [analysis.pruning] section of a study: how heads are removed, and how gates learn which."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    windows: int = Field(32, ge=2, le=MOST, description="Validation sequences that losses are measured on.")
    reference_windows: int = Field(
        32, ge=2, le=MOST, description="Other validation sequences, of which orders and means come."
    )
    bootstraps: int = Field(2000, ge=100, le=MOST, description="Resampled sets of sequences for confidence intervals.")
    random_orders: int = Field(10, ge=5, le=MOST, description="Random orders, the control.")
    batch_size: int = Field(4, ge=1, le=MOST, description="Training sequences a step, of gates and of retraining.")
    retrain_steps: int = Field(20, ge=1, le=MOST, description="Training steps after each head that is removed.")
    retrain_rate: float = Field(1e-3, gt=0, description="Their AdamW rate.")
    gate_lambdas: tuple[Annotated[float, Field(ge=0)], ...] = Field(
        (0.01, 0.03, 0.1, 0.2, 0.4), min_length=1, max_length=100, description="Penalties on open gates, nats a head."
    )
    gate_steps: int = Field(100, ge=1, le=MOST, description="Training steps of the gates for each penalty.")
    gate_rate: float = Field(0.2, gt=0, description="Their Adam rate.")
    repeats: int = Field(
        5, ge=1, le=MOST, description="How often passes of 32 sequences are timed; of one, ten times that."
    )
    seed: int = Field(0, ge=0, lt=1 << 31, description="Of random orders and of the gates' noise.")


class RedundancyConfig(BaseModel):
    """The [analysis.redundancy] section of a study: on how much text heads are compared."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    windows: int = Field(64, ge=2, le=MOST, description="Validation sequences that heads are compared on.")
    reference_windows: int = Field(
        64, ge=2, le=MOST, description="Other validation sequences, of which means are taken."
    )
    max_pairs: int = Field(512, ge=0, le=MOST, description="Most similar pairs that are ablated together.")
    cluster_distance: float = Field(
        0.5,
        gt=0,
        description="Mean Jensen-Shannon distance up to which clusters of heads are one: heads that share 3/4 of their"
        " attention are 0.5 apart at most.",
    )


class ProbesConfig(BaseModel):
    """The [analysis.probes] section of a study: what probes read from heads, and from how many tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    train_tokens: int = Field(16384, ge=1, le=MOST, description="Tokens that probes are trained on.")
    test_tokens: int = Field(8192, ge=1, le=MOST, description="Tokens of other documents that probes are tested on.")
    penalty: float = Field(1e-3, gt=0, description="Of the sum of a probe's squared weights, nats.")
    max_steps: int = Field(200, ge=1, le=MOST, description="Steps of the solver at most.")
    seed: int = Field(0, ge=0, lt=1 << 31, description="Of the control labels.")


class FeedForwardConfig(BaseModel):
    """The [analysis.feed_forward] section of a study: on how much text feed-forward neurons are ablated."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    windows: int = Field(64, ge=1, le=MOST, description="Validation sequences that effects are measured on.")
    reference_windows: int = Field(
        64, ge=1, le=MOST, description="Other validation sequences, of which means are taken."
    )
    n_groups: int = Field(8, ge=1, le=MOST, description="Groups that each layer's neurons are cut into.")
    bootstraps: int = Field(2000, ge=100, le=MOST, description="Resampled sets of sequences for confidence intervals.")
    seed: int = Field(0, ge=0, lt=1 << 31, description="Of the resampling.")


class AnalysisConfig(BaseModel):
    """The [analysis] section of a study: each part is what the stage of its name reads, and no other."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    stages: tuple[Stage, ...] = Field(
        get_args(Stage),
        min_length=1,
        max_length=len(get_args(Stage)),
        description="Which stages run; what others measure is missing from the report.",
    )
    behaviour: BehaviourConfig = Field(BehaviourConfig(), description="Losses and attention patterns.")
    weight_circuits: WeightCircuitsConfig = Field(
        WeightCircuitsConfig(), description="QK and OV circuits and composition, of weights alone."
    )
    activation_circuits: ActivationCircuitsConfig = Field(
        ActivationCircuitsConfig(), description="Paths, bigrams and causal checks, on text."
    )
    importance: ImportanceConfig = Field(ImportanceConfig(), description="Ablations, and scores that predict them.")
    pruning: PruningConfig = Field(PruningConfig(), description="How many heads can go.")
    redundancy: RedundancyConfig = Field(RedundancyConfig(), description="Heads that do the same.")
    feed_forward: FeedForwardConfig = Field(
        FeedForwardConfig(), description="What the loss owes to feed-forward layers."
    )
    probes: ProbesConfig = Field(ProbesConfig(), description="What heads' outputs tell.")
