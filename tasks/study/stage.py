"""A stage, declared once: what it is called, who does its work, what it reads and writes, and what it costs."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from pydantic import BaseModel

FLOPS_PER_SECOND = {"cpu": 80e9, "cuda": 50e12}  # what one core does, and a GPU


@dataclass(frozen=True)
class Size:
    """How much there is to do for one artifact, in what the costs of stages are stated in."""

    pass_flops: float = 0.0  # of a forward pass of one sequence
    n_ctx: int = 0  # tokens in a sequence
    n_checkpoints: int = 1
    checkpoint_bytes: int = 0  # of one
    bytes: float = 0.0  # to read
    flops: float = 0.0  # of a training
    device: str = "cpu"
    is_reduced: bool = False  # the budgets are those of the study smollm2, not the default ones


@dataclass(frozen=True)
class Cost:
    """What a stage takes one core, roughly: what a plan says before anything was measured."""

    seconds: float = 0.0
    passes: int = 0  # of one sequence, by the budgets that a study has by default
    reduced_passes: int = 0  # by those of the study smollm2
    each_checkpoint: bool = False  # passes are those of each checkpoint, not of the last alone
    bytes_per_second: float = 0.0  # of what is read
    checkpoints: int = 0  # weights of so many models are written beside tables
    by_history: Literal["", "speed", "mean"] = ""  # what earlier ones took counts instead: FLOPs a second, or seconds

    def seconds_for(self, size: Size) -> float:
        """How long the work on something of this size takes one core, or a GPU."""
        passes = self.reduced_passes if size.is_reduced else self.passes
        repeats = size.n_checkpoints if self.each_checkpoint else 1
        seconds = self.seconds + repeats * passes * size.pass_flops / FLOPS_PER_SECOND["cpu"]
        if self.bytes_per_second:
            seconds += size.bytes / self.bytes_per_second
        return seconds + size.flops / FLOPS_PER_SECOND[size.device]


@dataclass(frozen=True)
class Stage:
    """A kind of artifact, and how it is made.

    `reads` names its inputs by role: `corpus`, `tokens`, `model`, or the name of a stage that reads no model, of which
    a study then makes one artifact for all models. A stage with a `config` has a section of that type in [analysis].
    """

    name: str
    work: str  # module:function, which is called in a process of its own
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()  # tables of data/schema.sql
    incidental: tuple[str, ...] = ()  # files that tell of the making: the clock, or where text was found
    config: type[BaseModel] | None = None
    description: str = ""  # of its section in [analysis]
    fingerprint: str = ""  # module:function, from its config to what decides it besides: hashes of files that it reads
    cost: Cost = Cost()
    order: int = 0  # of analyses: where plans and reports name it
    title: str = "measure {stage} of {subject}"
    in_subprocess: bool = True
    is_resumable: bool = False  # an interrupted run leaves what another goes on with

    @property
    def module(self) -> str:
        """The module whose code makes its artifacts, with all that it reaches by import."""
        return self.work.partition(":")[0]

    @property
    def section(self) -> str:
        """The name of its section in [analysis]."""
        return self.name.replace("-", "_")

    @property
    def measures_models(self) -> bool:
        """Whether it measures a model, rather than making something that stages of all models read."""
        return "model" in self.reads


def resolve(place: str) -> Callable[..., Any]:
    """The function at `module:function`, imported only now."""
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function
