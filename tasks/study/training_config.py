"""The [training] section of a study: how every model of the grid is trained."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class TrainingConfig(BaseModel):
    """How a model is trained; the defaults form an induction head from natural text within 5 M tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    seed: int = Field(0, ge=0, lt=1 << 31, description="Of the weights' initialisation and of the order of batches.")
    tokens: int = Field(5_000_000, ge=1, le=10**12, description="Tokens to train on.")
    batch_size: int = Field(16, ge=1, le=1 << 16, description="Sequences in a batch.")
    optimizer: Literal["muon", "adamw"] = Field(
        "muon",
        description="muon: Muon on the matrices of layers, AdamW on the rest; adamw: AdamW on everything.",
    )
    learning_rate: float = Field(6e-3, gt=0, description="Highest rate of AdamW.")
    muon_learning_rate: float = Field(0.07, gt=0, description="Highest rate of Muon.")
    position_rate: float = Field(10.0, gt=0, description="How many times faster the relative position bias learns.")
    weight_decay: float = Field(0.01, ge=0, description="Decoupled decay of AdamW's matrices, times its rate.")
    muon_weight_decay: float = Field(0.2, ge=0, description="Decoupled decay of Muon's matrices, times its rate.")
    warmup_steps: int = Field(100, ge=0, lt=1 << 31, description="Steps over which the rates rise to their highest.")
    final_rate_fraction: float = Field(0.1, ge=0, le=1, description="Where the cosine ends.")
    gradient_clip: float = Field(1.0, gt=0, description="Largest norm of the whole gradient.")
    repeats_fraction: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of sequences that are random tokens repeated with a random period.",
    )
    prune_to: float = Field(
        1.0, gt=0, le=1, description="Share of heads left in the end: the least important go while the model trains."
    )
    gate_penalty: float = Field(
        0.03,
        ge=0,
        description="On gates of the architecture, in nats: hard_concrete for each head expected open; dynamic for"
        " the square of how many more or fewer heads than active_fraction are open on average.",
    )
    active_fraction: float = Field(
        0.5, gt=0, le=1, description="Share of heads that dynamic gates shall open for a token, on average."
    )
    gate_rate: float = Field(10.0, gt=0, description="How many times faster gates learn.")
    checkpoints: int = Field(
        16, ge=2, le=1000, description="Checkpoints kept: the first, the last, log-spaced between."
    )
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="auto: the GPU when there is one.")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto", description="Of matrix products; auto: bfloat16 where the device multiplies it faster."
    )
    compile: Literal["auto", "always", "never"] = Field(
        "auto", description="torch.compile; auto: when training is long enough to pay for compiling."
    )
    threads: int = Field(
        1, ge=1, le=1024, description="CPU threads of each model's process (models train side by side)."
    )
