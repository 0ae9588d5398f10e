"""A step's artifact, found in the store or made, while everybody is told how far that is."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol

from headstream.tasks.errors import WorkError
from headstream.tasks.graph.step import Inputs, Step
from headstream.tasks.machines.child_process import call, run_in_process
from headstream.tasks.machines.gpu_slots import gpu_slot
from headstream.tasks.progress import Event, State, publish
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.study.stage import Stage, resolve


class Told(Protocol):
    """The report of work that has more to tell than a fraction."""

    @property
    def fraction(self) -> float: ...
    @property
    def kept(self) -> float: ...
    @property
    def text(self) -> str: ...
    @property
    def state(self) -> State: ...


def materialise(step: Step, inputs: Inputs, on_fraction: Callable[[float], None] = lambda fraction: None) -> Artifact:
    """Find a step's artifact, or have its work fill a folder; publish when that begins, how far it is, and its end.

    Work is done in a process of its own, which sees one GPU at most; or in this one, where the stage says so. Whatever
    the work tells, `on_fraction` is given the fraction done.

    Raises:
        UserError, WorkError, OSError: as the work raises them, or the store.
    """
    spec = step.spec_of(inputs)

    def tell(fraction: float, state: State = "", text: str = "", kept: float = 0.0) -> None:
        publish(Event(*step.name, fraction, text, kept, spec.key, state))

    def hear(told: float | Told) -> None:
        fraction = told if isinstance(told, int | float) else told.fraction
        if isinstance(told, int | float):
            tell(fraction)
        else:
            tell(fraction, told.state, told.text, told.kept)
        on_fraction(fraction)

    def write(folder: Path) -> Mapping[str, Any]:
        tell(0.0)
        facts = _work(step, step.arguments_of(spec, inputs), folder, hear)
        _require_declared_tables(step.stage, folder)
        return facts

    try:
        artifact = open_store().build(
            spec,
            write,
            incidental=step.stage.incidental,
            resumable=step.stage.is_resumable,
            on_wait=lambda: tell(0.0, "waiting"),
        )
    except Exception:
        tell(0.0, "failed")
        raise
    tell(1.0)
    return artifact


def _work(
    step: Step, arguments: Mapping[str, Any], folder: Path, hear: Callable[[float | Told], None]
) -> Mapping[str, Any]:
    place = step.work or step.stage.work
    facts: Mapping[str, Any]
    if not step.stage.in_subprocess:
        facts = resolve(place)(**arguments, folder=folder, on_progress=hear)
        return facts
    with gpu_slot(step.gpus) if step.gpus else nullcontext() as environment:
        facts = run_in_process(call, place, **arguments, folder=folder, on_progress=hear, environment=environment)
    return facts


def _require_declared_tables(stage: Stage, folder: Path) -> None:
    from headstream.tasks.results.tables import tables

    written = {path.stem for path in folder.glob("*.parquet")} & tables().keys()
    if undeclared := sorted(written - {*stage.writes}):
        raise WorkError(
            f"The stage {stage.name} wrote the table {undeclared[0]}, which it doesn't declare. Add it to the stage's"
            " `writes`."
        )
