"""The [analysis] section of a study: how much is measured on every model, one part a stage."""

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
Replacement = Literal["zero", "mean", "position_mean", "resample"]
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
LEVEL = 0.01  # of significance, of pairs of heads that compose
MOST = 100_000  # of anything: more would fill the memory, and tell no more

MAX_RERUNS = (
    "Heads times sequences at most: of a model with more heads, fewer sequences are used, though 8 (or all) at least."
)

Count = Annotated[int, Field(ge=1, le=MOST)]
AtLeastTwo = Annotated[int, Field(ge=2, le=MOST)]
Seed = Annotated[int, Field(ge=0, lt=1 << 31)]


class BehaviourConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis.behaviour] section of a study: on how much text and on how many repeats models are measured."""

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
    seed: Seed = Field(0, description="Seed of the draw of the random tokens that are repeated.")


class WeightCircuitsConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis.weight_circuits] section of a study: what weights are held against, and what is significant."""

    level: float = Field(
        LEVEL, gt=0, lt=1, description="Probability that a model without composition has a significant pair of heads."
    )
    rotations: AtLeastTwo = Field(
        50, description="Random rotations of each head's output by which the null of composition scores is checked."
    )
    top_skip_trigrams: Count = Field(
        20, description="Skip-trigrams kept for each head, those with the largest effect first."
    )
    min_count: Count = Field(
        50, description="Minimum occurrences of a skip-trigram's tokens, and of its source before its destination."
    )
    statistics_tokens: int = Field(
        1_000_000, ge=1, le=10**12, description="Training tokens in which the corpus' own skip-trigrams are counted."
    )
    copying_tokens: Count = Field(4096, description="Most frequent tokens on which copying is tested.")
    evaluator_sequences: Count = Field(
        10, description="Sequences of random tokens on which heads are scored for copying."
    )
    matching_pairs: int = Field(
        1024,
        ge=0,
        le=MOST,
        description="Pairs of heads whose K-composed circuit is tested for matching: those that K-compose most. Each"
        " head's best writer is, too.",
    )
    persistence_windows: Count = Field(
        16, description="Validation sequences on which the persistence of what heads write is measured."
    )
    seed: Seed = Field(
        0, description="Seed of the random rotations and of the random tokens on which copying is scored."
    )


class ActivationCircuitsConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis.activation_circuits] section of a study: on how much text circuits are followed."""

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
    bigram_samples: int = Field(300, ge=0, le=MOST, description="Most frequent bigrams that are kept for plots.")
    max_pairs: int = Field(
        128,
        ge=0,
        le=MOST,
        description="Maximum number of pairs of heads checked causally, those of induction circuits apart, and of"
        " virtual heads ablated.",
    )
    max_circuits: int = Field(
        64,
        ge=0,
        le=MOST,
        description="Maximum number of induction circuits checked causally, those of the heads that attend most to what"
        " followed earlier copies first.",
    )
    max_sources: Count = Field(
        24,
        description="Earlier heads and feed-forward layers told apart as sources of a head's queries, and as many of"
        " its keys, those with the largest share of its scores first.",
    )
    level: float = Field(
        LEVEL,
        gt=0,
        lt=1,
        description="Probability that a model without composition has an induction circuit; that of"
        " [analysis.weight_circuits] for all pairs of heads.",
    )
    fixed_period_sequences: Count = Field(
        10, description="Sequences of random tokens repeated with a fixed period, for causal checks."
    )
    random_period_sequences: Count = Field(
        64, description="Sequences of random tokens repeated with a random period, for causal checks."
    )
    seed: Seed = Field(0, description="Seed of the draw of the random tokens that are repeated in causal checks.")


class ImportanceConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis.importance] section of a study: on how much text heads are ablated and scored."""

    windows: AtLeastTwo = Field(
        64, description="Validation sequences on which the effects of ablating heads are measured."
    )
    reference_windows: AtLeastTwo = Field(
        64, description="Other validation sequences, whose mean outputs replace those of ablated heads."
    )
    max_reruns: Count = Field(1024, description=MAX_RERUNS)
    replacements: tuple[Replacement, ...] = Field(
        get_args(Replacement),
        min_length=1,
        max_length=len(get_args(Replacement)),
        description="What takes the place of an ablated head's output: zero, its mean on other text, its mean there at"
        " the same position, or its output on other sequences.",
    )
    scopes: tuple[Scope, ...] = Field(
        get_args(Scope),
        min_length=1,
        max_length=len(get_args(Scope)),
        description="What later layers compute anew when a head is ablated: all, or all but their attention patterns.",
    )
    others: bool = Field(
        True, description="Whether each head is also left alone in its layer, all its others replaced by zero or mean."
    )
    resamples: int = Field(
        5, ge=5, le=MOST, description="Other sequences whose outputs replace an ablated head's, one sequence at a time."
    )
    seed: Seed = Field(0, description="Seed of the choice of replacement sequences.")


class PruningConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis.pruning] section of a study: how heads are removed, and how gates learn which."""

    windows: AtLeastTwo = Field(
        32, description="Validation sequences on which the losses of pruned models are measured."
    )
    reference_windows: AtLeastTwo = Field(
        32, description="Other validation sequences, from which pruning orders and mean outputs are taken."
    )
    max_reruns: Count = Field(512, description=MAX_RERUNS)
    max_points: Count = Field(
        16,
        description="Numbers of pruned heads, half of all apart, at which curves are measured and heads scored anew at"
        " most: in larger models several heads go at once, fewest where few have gone.",
    )
    methods: tuple[Method, ...] = Field(
        get_args(Method),
        max_length=len(get_args(Method)),
        description="Scores of importance by which heads are pruned. Most costly is ablation_resample, then the other"
        " ablations.",
    )
    iterative_methods: tuple[IterativeMethod, ...] = Field(
        get_args(IterativeMethod),
        max_length=len(get_args(IterativeMethod)),
        description="Those of the scores by which they are also pruned with scores taken anew as heads go.",
    )
    random_orders: int = Field(10, ge=5, le=MOST, description="Random orders in which heads are pruned as a control.")
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
        description="Penalties on open gates, in nats a head.",
    )
    gate_steps: Count = Field(
        100, description="Training steps in which gates are learned, for each penalty on open gates."
    )
    gate_rate: float = Field(0.2, gt=0, description="Learning rate of Adam while gates are learned.")
    keep: tuple[Literal["within 1 %", "within 5 %", "half"], ...] = Field(
        ("within 1 %", "within 5 %", "half"),
        max_length=3,
        description="Which pruned models are kept as checkpoints, of each way to prune: those with most heads gone at"
        " less than so much more loss, and that with half of the heads.",
    )
    repeats: Count = Field(
        5,
        description="Timed passes of 32 sequences through each pruned model, fewer where they take long; ten times as"
        " many of one.",
    )
    seed: Seed = Field(0, description="Seed of the random pruning orders and of the noise on gates.")


class RedundancyConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis.redundancy] section of a study: on how much text heads are compared."""

    windows: AtLeastTwo = Field(64, description="Validation sequences on which heads are compared.")
    reference_windows: AtLeastTwo = Field(
        64, description="Other validation sequences, whose mean outputs replace those of ablated heads."
    )
    max_reruns: Count = Field(1024, description=MAX_RERUNS)
    max_pairs: int = Field(
        128,
        ge=0,
        le=MOST,
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
    """The [analysis.probes] section of a study: what probes read from heads, and from how many tokens."""

    train_tokens: Count = Field(16384, description="Tokens on which probes are trained.")
    selection_tokens: Count = Field(8192, description="Tokens of other documents on which the best head is chosen.")
    test_tokens: Count = Field(8192, description="Tokens of yet other documents on which probes are tested.")
    control_draws: int = Field(
        8,
        ge=8,  # of fewer the error could not be told
        le=1000,
        description="Draws of control labels, with the mean of whose accuracies a probe's is compared.",
    )
    penalty: float = Field(1e-3, gt=0, description="Penalty on the sum of a probe's squared weights, in nats.")
    max_steps: Count = Field(200, description="Maximum number of steps of the solver that fits a probe.")
    seed: Seed = Field(0, description="Seed of the draws of control labels, with the model's and the task's names.")


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


class AnalysisConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The [analysis] section of a study: each part is what the stage of its name reads, and no other."""

    device: Literal["cpu", "cuda"] = Field(
        "cpu", description="Where models are measured; cuda, for large ones: GPUs are shared as [resources] gpus says."
    )
    stages: tuple[Stage, ...] = Field(
        get_args(Stage),
        min_length=1,
        max_length=len(get_args(Stage)),
        description="Stages of the analysis that run; what the others measure is missing from the report.",
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
        FeedForwardConfig(), description="How much the loss depends on feed-forward layers."
    )
    probes: ProbesConfig = Field(ProbesConfig(), description="What linear probes read from the outputs of heads.")
