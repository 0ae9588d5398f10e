"""The [analysis] section of a study: the amount that is measured on every model, one part per stage."""

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, Field

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
ReplacementMethod = Literal["zero", "mean", "position_mean", "resample"]
Scope = Literal["full", "frozen_patterns"]
Method = Literal[
    "michel_paper",
    "michel_code",
    "hf_bertology",
    "taylor_signed",
    "weight_norm",
    "qkv_norm",
    "attention_variance",
    "confidence",
    "ablation_zero",
    "ablation_mean",
    "ablation_resample",
    "lrp",
]
IterativeMethod = Literal[
    "michel_paper", "michel_code", "hf_bertology", "taylor_signed", "ablation_zero", "ablation_mean"
]
SIGNIFICANCE_LEVEL = 0.01  # of significance, for pairs of heads that compose
MAX_AMOUNT = 100_000  # of anything: more would fill the memory, and add nothing

MAX_RERUNS = (
    "Maximum of heads times sequences: for a model with more heads, fewer sequences are used, but at least 8 (or all)."
)

Count = Annotated[int, Field(ge=1, le=MAX_AMOUNT)]
AtLeastTwo = Annotated[int, Field(ge=2, le=MAX_AMOUNT)]
Seed = Annotated[int, Field(ge=0, lt=1 << 31)]


class BehaviourConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
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


class WeightCircuitsConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis.weight_circuits] section of a study: comparisons for the weights, and the level of significance."""

    level: float = Field(
        SIGNIFICANCE_LEVEL,
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
        le=MAX_AMOUNT,
        description="Pairs of heads whose K-composed circuit is tested for matching: those that K-compose most, and"
        " each head with its best writer.",
    )
    persistence_windows: Count = Field(
        16, description="Validation sequences on which the persistence of heads' outputs is measured."
    )
    seed: Seed = Field(
        0, description="Seed of the random rotations, and of the random tokens on which copying is scored."
    )


class ActivationCircuitsConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
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
    bigram_samples: int = Field(300, ge=0, le=MAX_AMOUNT, description="Number of most frequent bigrams kept for plots.")
    max_pairs: int = Field(
        128,
        ge=0,
        le=MAX_AMOUNT,
        description="Maximum number of pairs of heads checked causally, not counting those of induction circuits, and"
        " of virtual heads ablated.",
    )
    max_circuits: int = Field(
        64,
        ge=0,
        le=MAX_AMOUNT,
        description="Maximum number of induction circuits checked causally, starting with the heads that attend most to"
        " what followed earlier copies.",
    )
    max_sources: Count = Field(
        24,
        description="Earlier heads and feed-forward layers shown separately as sources of a head's queries, and as many"
        " of its keys: those with the largest share of its scores.",
    )
    level: float = Field(
        SIGNIFICANCE_LEVEL,
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


class ImportanceConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis.importance] section of a study: the amount of text on which heads are ablated and scored."""

    windows: AtLeastTwo = Field(
        64, description="Validation sequences on which the effects of ablating heads are measured."
    )
    reference_windows: AtLeastTwo = Field(
        64, description="Other validation sequences, whose mean outputs replace those of ablated heads."
    )
    max_reruns: Count = Field(1024, description=MAX_RERUNS)
    replacements: tuple[ReplacementMethod, ...] = Field(
        get_args(ReplacementMethod),
        min_length=1,
        max_length=len(get_args(ReplacementMethod)),
        description="Replacements of an ablated head's output: zero, its mean on other text, its mean there at the same"
        " position, or its output on other sequences.",
    )
    scopes: tuple[Scope, ...] = Field(
        get_args(Scope),
        min_length=1,
        max_length=len(get_args(Scope)),
        description="What later layers recompute when a head is ablated: everything, or all but attention patterns.",
    )
    others: bool = Field(
        True, description="Also keep each head alone in its layer, with all others replaced by zero or their mean."
    )
    resamples: int = Field(
        5,
        ge=5,
        le=MAX_AMOUNT,
        description="Other sequences whose outputs replace an ablated head's, one sequence at a time.",
    )
    seed: Seed = Field(0, description="Seed of the choice of replacement sequences.")


class PruningConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis.pruning] section of a study: the orders in which heads are removed, and the training of gates."""

    windows: AtLeastTwo = Field(
        32, description="Validation sequences on which the losses of pruned models are measured."
    )
    reference_windows: AtLeastTwo = Field(
        32, description="Other validation sequences, from which pruning orders and mean outputs are taken."
    )
    max_reruns: Count = Field(512, description=MAX_RERUNS)
    max_points: Count = Field(
        16,
        description="Maximum number of points, besides half of all heads, at which curves are measured and heads"
        " rescored: in larger models several heads go at once, fewer at the start.",
    )
    methods: tuple[Method, ...] = Field(
        get_args(Method),
        max_length=len(get_args(Method)),
        description="Scores of importance by which heads are pruned. The most expensive is ablation_resample, then the"
        " other ablations.",
    )
    iterative_methods: tuple[IterativeMethod, ...] = Field(
        get_args(IterativeMethod),
        max_length=len(get_args(IterativeMethod)),
        description="Scores by which heads are also pruned iteratively, recomputed as heads go.",
    )
    random_orders: int = Field(
        10, ge=5, le=MAX_AMOUNT, description="Random orders in which heads are pruned as a control."
    )
    batch_size: Count = Field(
        4, description="Training sequences in a batch while gates are learned or pruned models retrained."
    )
    retrain_steps: Count = Field(
        20, description="Training steps after each removed head, where pruned models are retrained."
    )
    retrain_rate: float = Field(1e-3, gt=0, description="Learning rate of AdamW while pruned models are retrained.")
    gate_lambdas: tuple[Annotated[float, Field(ge=0)], ...] = Field(
        (0.01, 0.03, 0.1, 0.2, 0.4),
        min_length=1,
        max_length=100,
        description="Penalties on open gates, in nats per head.",
    )
    gate_steps: Count = Field(
        100, description="Training steps in which gates are learned, for each penalty on open gates."
    )
    gate_rate: float = Field(0.2, gt=0, description="Learning rate of Adam while gates are learned.")
    keep: tuple[Literal["within 1 %", "within 5 %", "half"], ...] = Field(
        ("within 1 %", "within 5 %", "half"),
        max_length=3,
        description="Pruned models that each way of pruning keeps as checkpoints: the smallest whose loss rose by less"
        " than this, and the one with half of the heads.",
    )
    repeats: Count = Field(
        5,
        description="Timed passes of 32 sequences through each pruned model, fewer where they take long; ten times as"
        " many of a single sequence.",
    )
    seed: Seed = Field(0, description="Seed of the random pruning orders and of the noise on gates.")


class RedundancyConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis.redundancy] section of a study: the amount of text on which heads are compared."""

    windows: AtLeastTwo = Field(64, description="Validation sequences on which heads are compared.")
    reference_windows: AtLeastTwo = Field(
        64, description="Other validation sequences, whose mean outputs replace those of ablated heads."
    )
    max_reruns: Count = Field(1024, description=MAX_RERUNS)
    max_pairs: int = Field(
        128,
        ge=0,
        le=MAX_AMOUNT,
        description="Maximum number of pairs of heads that are ablated together, the most similar first.",
    )
    pattern_queries: Count = Field(
        64, description="Queries whose attention is kept, to compare heads with those of models of other seeds."
    )
    cluster_distance: float = Field(
        0.5,
        gt=0,
        description="Mean Jensen-Shannon distance up to which heads form a cluster; heads that share 3/4 of their"
        " attention are at most 0.5 apart.",
    )


class ProbesConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
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


class FeedForwardConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
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


class AnalysisConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis] section of a study: each part is read by the stage of its name alone."""

    device: Literal["cpu", "cuda"] = Field(
        "cpu",
        description="Device that models are measured on; cuda for large ones, sharing GPUs as [resources] gpus says.",
    )
    stages: tuple[Stage, ...] = Field(
        get_args(Stage),
        min_length=1,
        max_length=len(get_args(Stage)),
        description="Stages of the analysis to run; what the others measure is missing from the report.",
    )
    behaviour: BehaviourConfig = Field(
        BehaviourConfig(), description="Losses, attention patterns and induction scores."
    )
    weight_circuits: WeightCircuitsConfig = Field(
        WeightCircuitsConfig(), description="QK and OV circuits and composition, from weights alone."
    )
    activation_circuits: ActivationCircuitsConfig = Field(
        ActivationCircuitsConfig(), description="Paths, bigrams and causal checks, on text."
    )
    importance: ImportanceConfig = Field(
        ImportanceConfig(), description="Ablations of heads, and scores that predict their effects."
    )
    pruning: PruningConfig = Field(PruningConfig(), description="How many heads can be removed.")
    redundancy: RedundancyConfig = Field(RedundancyConfig(), description="Heads that do the same as others.")
    feed_forward: FeedForwardConfig = Field(
        FeedForwardConfig(), description="Effects of ablating feed-forward neurons on the loss."
    )
    probes: ProbesConfig = Field(ProbesConfig(), description="What linear probes read from the outputs of heads.")
