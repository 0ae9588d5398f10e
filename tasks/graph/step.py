"""A step of a study: one artifact, with all that is needed to plan it, to find it and to make it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import BaseModel

from headstream.tasks.storage.artifact import Artifact, Spec
from headstream.tasks.study.stage import CountedWork, Size, Stage

Inputs = Mapping[str, Artifact]  # what a step reads, by role


class LeftOut(Exception):
    """There is nothing to make of a step, for a reason that is no failure; says which, in one line."""


class StepName(NamedTuple):
    """The name of a step, unique in its study."""

    stage: str
    subject: str


@dataclass(frozen=True)
class Step:
    """One artifact of a study, declared before anything is made.

    Its functions are called once its inputs are there: they give what decides the artifact, and what its work is called
    with.
    """

    stage: Stage
    subject: str  # the model that it is of, or what it is to all models
    spec_of: Callable[[Inputs], Spec]
    arguments_of: Callable[[Spec, Inputs], Mapping[str, Any]]
    inputs: Mapping[str, StepName] = field(default_factory=dict)  # by role
    part: str = ""  # of what its stage makes of the subject, where that is several artifacts: a prompt set
    work: str = ""  # module:function, where it isn't the stage's
    title: str = ""  # in Prefect's pages, where it isn't the stage's
    cell_id_of: Callable[[Spec], str] | None = None  # of one that makes a model: its name whatever comes of it
    size: Size = field(default_factory=Size)
    budget: BaseModel | None = None  # the section of [analysis] of one that measures a model
    counted: CountedWork | None = None  # where its stage counts its work
    bytes: int = 0  # that it will write, roughly
    is_shared: bool = False  # by all models
    gpus: float = 0.0  # the share of a GPU that it holds meanwhile
    decides_late: bool = False  # what it makes, or whether there is anything to make, is in what it reads
    note: str = ""  # for the log, when it begins

    @property
    def name(self) -> StepName:
        """The name by which other steps refer to it."""
        return StepName(f"{self.stage.name} {self.part}".strip(), self.subject)

    @property
    def run_name(self) -> str:
        """The name on Prefect's pages."""
        return self.title or self.stage.title.format(stage=self.name.stage, subject=self.subject)

    @property
    def seconds(self) -> float:
        """The seconds that it takes one core, by what its stage declares."""
        return self.counted.seconds if self.counted else self.stage.seconds_for(self.size, self.budget)

    @property
    def makes_model(self) -> bool:
        """True if its artifact is a model: trained, or from elsewhere."""
        return self.cell_id_of is not None

    @property
    def measures_model(self) -> bool:
        """True if it reads a model."""
        return "model" in self.inputs

    def left_out(self, made: Mapping[StepName, Any]) -> LeftOut | None:
        """Why there is nothing to make, as far as its inputs tell; None if there is something."""
        given = self.given(made)
        why = next((own for own in given.values() if isinstance(own, LeftOut)), None)
        if why is None and self.decides_late:
            try:
                self.spec_of(given)
            except LeftOut as found:
                why = found
        return why

    def given(self, made: Mapping[StepName, Any]) -> dict[str, Any]:
        """Its inputs, by role, taken from what the steps before it made.

        Raises:
            KeyError: a step before it made nothing.
        """
        return {role: made[name] for role, name in self.inputs.items()}
