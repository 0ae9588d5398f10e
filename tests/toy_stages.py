"""Two stages of one's own, declared in this one file: a file of prompts, and what a model makes of them."""

import shutil
from hashlib import sha256
from pathlib import Path

import torch
from pydantic import BaseModel, Field

from headstream.models.losses import sequence_losses
from headstream.tasks.measuring.head_rows import importance_rows
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.study.analyses import declare
from headstream.tasks.study.stage import Cost, Stage


class PromptsConfig(BaseModel, frozen=True, extra="forbid"):
    path: str = Field("", description="File of prompts, one a line.")


class EchoConfig(BaseModel, frozen=True, extra="forbid"):
    most: int = Field(10, ge=1, description="Maximum number of prompts that are read.")


def fingerprint(config: PromptsConfig) -> dict[str, str]:
    return {"sha256": sha256(Path(config.path).read_bytes()).hexdigest()}


def write_prompts(config: PromptsConfig, folder: Path, on_progress) -> dict[str, int]:
    shutil.copy(config.path, folder / "prompts.txt")
    on_progress(1.0)
    return {"prompts": len(Path(config.path).read_text().splitlines())}


def measure_echo(config: EchoConfig, trained: TrainedModel) -> None:
    """Gives every head the mean loss of the model on the prompts for a score."""
    prompts = (trained.others["prompts"] / "prompts.txt").read_text().splitlines()[: config.most]
    ids = [[trained.tokens.bos, *trained.tokens.tokenizer.encode(prompt).ids][:8] for prompt in prompts]
    loss = sequence_losses(trained.model, torch.tensor(ids)).mean().item()
    scores = [torch.full((n,), loss) for n in trained.model.architecture.heads_per_layer]
    trained.write("importance", importance_rows("echo", scores))


declare(
    Stage(
        "prompts",
        work="toy_stages:write_prompts",
        config=PromptsConfig,
        description="Prompts.",
        fingerprint="toy_stages:fingerprint",
        title="read the prompts",
    ),
    Stage(
        "echo",
        work="toy_stages:measure_echo",
        reads=("model", "tokens", "prompts"),
        writes=("importance",),
        config=EchoConfig,
        description="Losses on prompts.",
        cost=Cost(passes=10, large_passes=10),
        order=99,
    ),
)
