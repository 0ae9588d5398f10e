"""The [training] section of a study: the training of every model of the grid."""

from typing import Literal

from pydantic import BaseModel, Field

from headstream.tasks.study.field_types import ListOf
from headstream.tasks.study.training_interventions import InterventionConfig


class TrainingConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The training of a model; the defaults form an induction head on source code within 5 M tokens."""

    seed: int = Field(0, ge=0, lt=1 << 31, description="Seed of the initial weights and of the order of batches.")
    tokens: int = Field(5_000_000, ge=1, le=10**12, description="Tokens that a model is trained on.")
    batch_size: int = Field(16, ge=1, le=1 << 16, description="Sequences in a training batch.")
    optimizer: Literal["muon", "adamw"] = Field(
        "muon",
        description="Optimiser. muon: Muon for the matrices of layers, AdamW for everything else; adamw: AdamW for"
        " everything.",
    )
    learning_rate: float = Field(6e-3, gt=0, description="Peak learning rate of AdamW.")
    muon_learning_rate: float = Field(0.07, gt=0, description="Peak learning rate of Muon.")
    position_rate: float = Field(
        10.0, gt=0, description="Learning rate of the relative position bias, as a multiple of AdamW's."
    )
    weight_decay: float = Field(
        0.01, ge=0, description="Decoupled weight decay of the matrices that AdamW trains, times its learning rate."
    )
    muon_weight_decay: float = Field(
        0.2, ge=0, description="Decoupled weight decay of the matrices that Muon trains, times its learning rate."
    )
    warmup_steps: int = Field(
        100, ge=0, lt=1 << 31, description="Training steps over which learning rates rise to their peak."
    )
    final_rate_fraction: float = Field(
        0.1, ge=0, le=1, description="Learning rates at the end of the cosine schedule, as a fraction of their peak."
    )
    gradient_clip: float = Field(
        1.0, gt=0, description="Norm to which the gradient of all parameters together is clipped."
    )
    repeats_fraction: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Fraction of training sequences that are random tokens repeated with a random period.",
    )
    interventions: ListOf[InterventionConfig] = Field(
        (), max_length=32, description="What is done to heads, or to the loss, while the model trains."
    )
    prune_to: float = Field(
        1.0, gt=0, le=1, description="Fraction of heads left at the end; the least important are removed in training."
    )
    gate_penalty: float = Field(
        0.03,
        ge=0,
        description="Penalty on open gates, in nats. hard_concrete gates: per head that is expected to be open;"
        " dynamic gates: per squared difference between the number of heads open on average and that of"
        " active_fraction.",
    )
    active_fraction: float = Field(
        0.5, gt=0, le=1, description="Fraction of heads that dynamic gates should open for a token, on average."
    )
    gate_rate: float = Field(10.0, gt=0, description="Learning rate of gates, as a multiple of AdamW's.")
    checkpoints: int = Field(
        16,
        ge=2,
        le=1000,
        description="Checkpoints kept of each model: the first, the last, and log-spaced ones between.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="Device that models are trained on; auto: the GPU if there is one, else the CPU."
    )
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto", description="Precision of matrix products; auto: bfloat16 where the device multiplies it faster."
    )
    compile: Literal["auto", "always", "never"] = Field(
        "auto", description="Use of torch.compile; auto: where training is long enough to repay the compiling."
    )
    threads: int = Field(
        1, ge=1, le=1024, description="CPU threads of each model's process; models train side by side."
    )
