"""The stage `pruning`: how many heads can be removed."""

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, Field

from headstream.tasks.study.field_types import MAX_COUNT, MAX_RERUNS, AtLeastTwo, Count, ListOf, Seed
from headstream.tasks.study.stage import Cost, Stage

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


class PruningConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
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
    methods: ListOf[Method] = Field(
        get_args(Method),
        max_length=len(get_args(Method)),
        description="Scores of importance by which heads are pruned. The most expensive is ablation_resample, then the"
        " other ablations.",
    )
    iterative_methods: ListOf[IterativeMethod] = Field(
        get_args(IterativeMethod),
        max_length=len(get_args(IterativeMethod)),
        description="Scores by which heads are also pruned iteratively, recomputed as heads go.",
    )
    random_orders: int = Field(
        10, ge=5, le=MAX_COUNT, description="Random orders in which heads are pruned as a control."
    )
    batch_size: Count = Field(
        4, description="Training sequences in a batch while gates are learned or pruned models retrained."
    )
    retrain_steps: Count = Field(
        20, description="Training steps after each removed head, where pruned models are retrained."
    )
    retrain_rate: float = Field(1e-3, gt=0, description="Learning rate of AdamW while pruned models are retrained.")
    gate_lambdas: ListOf[Annotated[float, Field(ge=0)]] = Field(
        (0.01, 0.03, 0.1, 0.2, 0.4),
        min_length=1,
        max_length=100,
        description="Penalties on open gates, in nats a head.",
    )
    gate_steps: Count = Field(
        100, description="Training steps in which gates are learned, for each penalty on open gates."
    )
    gate_rate: float = Field(0.2, gt=0, description="Learning rate of Adam while gates are learned.")
    keep: ListOf[Literal["within 1 %", "within 5 %", "half"]] = Field(
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


STAGE = Stage(
    "pruning",
    work="headstream.tasks.measuring.pruning:measure_pruning",
    reads=("model", "tokens"),
    writes=("gate_sweeps", "gates", "importance", "pruned_models", "pruning"),
    incidental=("pruned_models.parquet",),  # it records the clock
    config=PruningConfig,
    description="Removal of heads, and its effect on the loss.",
    cost=Cost(seconds=0.1, passes=18_000, large_passes=1200, checkpoints=7),
    units="headstream.tasks.study.work_units:pruning",
    large_fields={
        "windows": 4,
        "reference_windows": 4,
        "gate_lambdas": (0.03, 0.1),
        "gate_steps": 20,
        "retrain_steps": 2,
        "batch_size": 2,
        "repeats": 1,
        "random_orders": 5,
        "max_points": 8,
        "methods": ("michel_paper", "taylor_signed", "weight_norm", "confidence", "attention_variance", "lrp"),
        "iterative_methods": ("michel_paper",),
        "keep": ("within 5 %",),
    },
    trial_fields={
        "windows": 3,
        "reference_windows": 3,
        "gate_lambdas": (0.1,),
        "gate_steps": 1,
        "retrain_steps": 1,
        "random_orders": 5,
        "repeats": 1,
    },
    order=5,
)
