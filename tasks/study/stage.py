"""The declaration of a stage: its name, its work, its inputs and outputs, and its cost."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from headstream.models.architecture import Architecture

Passes = Literal["plain", "silenced", "changed"]
"""What interventions do to a model at its last checkpoint: nothing; silence heads, as if they had no W_O; or more."""

FLOPS_PER_SECOND = {"cpu": 80e9, "cuda": 50e12}  # of one core, and of a GPU
LARGE_PASS_FLOPS = 7e9  # from which a model is nearer to one of 100 M parameters than to those that studies train


class CountedWork(NamedTuple):
    """What one artifact takes, as a stage counts it that knows more than numbers of passes."""

    seconds: float  # with as many threads as it has
    memory_bytes: int  # held at most


@dataclass(frozen=True)
class Size:
    """The amount of work for one artifact, in the units of the costs of stages."""

    architecture: Architecture | None = None  # of the model that is measured
    pass_flops: float = 0.0  # of a forward pass of one sequence
    n_ctx: int = 0  # tokens in a sequence
    n_checkpoints: int = 1
    checkpoint_bytes: int = 0  # of one
    bytes: float = 0.0  # to read
    flops: float = 0.0  # of a training
    device: str = "cpu"
    n_layers: int = 0
    n_heads: int = 0  # in all layers

    @property
    def is_large(self) -> bool:
        """True for a model that the budget `large` is for."""
        return self.pass_flops >= LARGE_PASS_FLOPS

    def windows(self, windows: int, max_reruns: int, n_parts: int) -> int:
        """Sequences rerun for each of a model's heads, or other parts, within a stage's budget; at least 8, or all."""
        return min(windows, max(8, max_reruns // max(1, n_parts)))


@dataclass(frozen=True)
class Cost:
    """A rough cost of a stage on one core, for plans made before anything was measured."""

    seconds: float = 0.0
    passes: int = 0  # of one sequence, by a small model with the default budget
    large_passes: int = 0  # by a model of 100 M parameters with the budget `large`
    each_checkpoint: bool = False  # passes are per checkpoint, not for the last one only
    bytes_per_second: float = 0.0  # of input
    checkpoints: int = 0  # number of models whose weights are written besides tables
    by_history: Literal["", "speed", "mean"] = ""  # use FLOPs per second, or seconds, of earlier runs instead

    def seconds_for(self, size: Size, times: float = 1.0) -> float:
        """Estimated seconds for work of this size on one core, or on a GPU, with so many times the usual budget."""
        passes = self.large_passes if size.is_large else self.passes
        repeats = size.n_checkpoints if self.each_checkpoint else 1
        seconds = self.seconds + repeats * passes * times * size.pass_flops / FLOPS_PER_SECOND["cpu"]
        if self.bytes_per_second:
            seconds += size.bytes / self.bytes_per_second
        return seconds + size.flops / FLOPS_PER_SECOND[size.device]


@dataclass(frozen=True)
class Stage:
    """A kind of artifact, and the way it is made.

    `reads` names its inputs by role: `corpus`, `tokens`, `model`, or the name of a stage that reads no model, of which
    a study makes one artifact for all models. A stage with a `config` has a section of that type in [analysis].
    """

    name: str
    work: str  # module:function, which is called in a process of its own
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()  # tables of data/schema.sql
    incidental: tuple[str, ...] = ()  # files that describe the making: the clock, or where text was found
    config: type[BaseModel] | None = None
    description: str = ""  # of its section in [analysis]
    fingerprint: str = ""  # module:function, from its config to what else decides it: hashes of files that it reads
    cost: Cost = Cost()
    split_by: str = ""  # field of its config, of whose items each is an artifact of its own
    counts_work: str = ""  # module:function, from its config, a Size, threads and the config of the part to CountedWork
    idle_without: str = ""  # `section.field` of [analysis] that is empty where it has nothing to do
    measures: tuple[Passes, ...] = ("plain", "silenced")  # models of which it does
    units: str = ""  # module:function, from its config and a size to its work, in units of its own
    large_fields: Mapping[str, Any] = field(default_factory=dict)  # of its section with the budget `large`
    trial_fields: Mapping[str, Any] = field(default_factory=dict)  # values of its section with which trials run it
    order: int = 0  # of analyses: the place in plans and reports
    title: str = "measure {stage} of {subject}"
    in_subprocess: bool = True
    is_resumable: bool = False  # an interrupted run leaves state that another resumes from

    @property
    def module(self) -> str:
        """The module whose code makes its artifacts, with all that it reaches by import."""
        return self.work.partition(":")[0]

    @property
    def section(self) -> str:
        """The name of its section in [analysis]."""
        return self.name.replace("-", "_")

    def part_of(self, analysis: BaseModel) -> BaseModel:
        """Its section of an [analysis]."""
        part: BaseModel = getattr(analysis, self.section)
        return part

    def seconds_for(self, size: Size, budget: BaseModel | None = None) -> float:
        """Estimated seconds for work of this size, with the budget that a study gives it, or the usual one."""
        if not self.units or self.config is None or budget is None:
            return self.cost.seconds_for(size)
        usual, units = self.config(**(self.large_fields if size.is_large else {})), resolve(self.units)
        return self.cost.seconds_for(size, units(budget, size) / max(1.0, units(usual, size)))

    def parts_of(self, analysis: BaseModel) -> dict[str, BaseModel]:
        """The config of each of its artifacts, by the name of the item that it is of: its section, or a part of it."""
        whole = self.part_of(analysis)
        if not self.split_by:
            return {"": whole}
        items = getattr(whole, self.split_by)
        return {item.name: whole.model_copy(update={self.split_by: (item,)}) for item in items}

    def is_idle(self, analysis: BaseModel) -> bool:
        """True if a study gives it nothing to do."""
        section, _, field = self.idle_without.partition(".")
        return bool(section) and not getattr(getattr(analysis, section), field)

    @property
    def measures_models(self) -> bool:
        """True if it measures a model, rather than making an input for the stages of all models."""
        return "model" in self.reads


def resolve(place: str) -> Callable[..., Any]:
    """The function at `module:function`, imported only now."""
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function
