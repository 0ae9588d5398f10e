"""The progress of a study: its plan, brought up to date by the events of its steps."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from headstream.flows.pace import Work, rest_of, slowness
from headstream.tasks.graph.planning import PlannedArtifact, seconds_left
from headstream.tasks.progress import Event, State

MAKING = {"training": "training", "import": "importing"}  # stages that make a model, and what it is doing then
TEXT_WEIGHT = 0.1  # of the pace of what reads text, in that of the machine
LAST_STEPS = {"study": "recording", "warehouse": "indexing", "report": "reporting"}  # after all models
LAST_SECONDS = 10.0  # that these take, roughly
WAITING = "waiting for another run"
COMPILING = "up to a minute the first time"
MAX_NUMBERS = 5  # in one sentence


@dataclass
class ArtifactProgress:
    """An artifact that the study needs: what was planned, and how far it is."""

    planned: PlannedArtifact
    fraction: float = 0.0
    kept: float = 0.0
    state: State = ""
    text: str = ""
    began: float | None = None
    """The time when its work began in this run; compiling, waiting, and what an earlier run had done, don't count."""
    first: float = 0.0
    """The fraction at which it began."""
    worked: float = 0.0
    """Seconds from then to its last event."""
    key: str = ""
    """Its name in the store, once this run has come to it."""

    @property
    def in_work(self) -> bool:
        return self.began is not None and self.fraction < 1 and self.state != "failed"

    def hear(self, event: Event, now: float) -> bool:
        """Take in an event; whether it says that the work goes on from where an earlier run was interrupted."""
        goes_on = event.kept > 0 and self.fraction == 0
        was_idle = {"compiling", "waiting"} & {event.state, self.state}
        if goes_on or self.began is None or event.fraction == 0 or was_idle:
            self.began, self.first = now, event.fraction
        self.fraction, self.kept, self.state, self.text = event.fraction, event.kept, event.state, event.text
        self.worked, self.key = now - self.began, event.key or self.key
        return goes_on

    def work(self, now: float) -> Work:
        """What is planned of it, done and left; while it compiles or waits for another run, it isn't in work."""
        seconds = self.planned.seconds
        rest = seconds * (1 - self.fraction)
        weight = 1.0 if self.planned.measures_model or self.planned.stage in MAKING else TEXT_WEIGHT
        if self.began is None:
            return Work(self.planned.stage, seconds, rest=rest, weight=weight)
        is_silent = self.in_work and not self.state
        silent = max(0.0, now - self.began - self.worked) if is_silent else 0.0
        return Work(
            self.planned.stage, seconds, seconds * (self.fraction - self.first), self.worked, silent, rest, weight
        )


@dataclass
class ModelProgress:
    """A model of the grid, by the name that the plan gives it: its training and, by stage, what measures it."""

    name: str
    clock: Callable[[], float] = time.monotonic
    parts: dict[str, ArtifactProgress] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """One of failed, done, in work, waiting."""
        parts = self.parts.values()
        if any(part.state == "failed" for part in parts):
            return "failed"
        if all(part.fraction == 1 for part in parts):
            return "done"
        return "in work" if any(part.in_work for part in parts) else "waiting"

    @property
    def training(self) -> ArtifactProgress:
        """Its training, or its import."""
        return next(part for stage, part in self.parts.items() if stage in MAKING)

    @property
    def phase(self) -> str:
        """Its state; while it is in work, one of tokenising, training, importing, compiling, measuring."""
        if self.state != "in work":
            return self.state
        if self.training.in_work:
            is_compiling = self.training.state == "compiling"
            return "compiling" if is_compiling else MAKING[self.training.planned.stage]
        return "tokenising" if "tokens" in self.parts and self.parts["tokens"].in_work else "measuring"

    @property
    def details(self) -> str:
        """The text of its training's last event, how long it has compiled, or the stages that measure it now."""
        if self.training.in_work:
            if self.training.state == "compiling":
                return f"for {duration(self.clock() - (self.training.began or 0.0))}, {COMPILING}"
            return WAITING if self.training.state == "waiting" else self.training.text
        return ", ".join(stage for stage, part in self.parts.items() if part.in_work)

    @property
    def fraction(self) -> float:
        """The fraction of its training that is done or, by planned time, of the stages that measure it."""
        if self.training.in_work:
            return self.training.fraction
        measures = [part for part in self.parts.values() if part.planned.measures_model]
        planned = sum(part.planned.seconds for part in measures)
        return sum(part.planned.seconds * part.fraction for part in measures) / planned if planned else 0.0


class StudyProgress:
    """A study's artifacts and how far each is; events of what nobody planned change nothing."""

    def __init__(
        self, name: str, planned: Iterable[PlannedArtifact], jobs: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = name
        self.models: dict[str, ModelProgress] = {}
        self._jobs, self._clock, self._began = jobs, clock, clock()
        self._shared: dict[str, ArtifactProgress] = {}
        self._last_step, self._reported = "", 0.0  # the fraction of the report
        self._shown = 0.0  # the largest fraction that was told
        self._take_in(ArtifactProgress(each, fraction=float(each.done)) for each in planned)

    @classmethod
    def of_snapshot(cls, told: Mapping[str, Any]) -> "StudyProgress":
        """The same in another process, as far as it had come.

        Raises: TypeError or LookupError when another release has told it.
        """
        now = told["now"]
        progress = cls(told["study"], (), told["jobs"], clock=lambda: now)
        progress._take_in(
            ArtifactProgress(**part | {"planned": PlannedArtifact(**part["planned"])}) for part in told["parts"]
        )
        progress._began, progress._shown, progress._last_step = told["began"], told["shown"], told["last_step"]
        return progress

    def snapshot(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "study": self.name,
            "jobs": self._jobs,
            "now": self._clock(),
            "began": self._began,
            "shown": self._shown,
            "last_step": self._last_step,
            "parts": [asdict(part) for part in self._parts()],
        }

    def _take_in(self, parts: Iterable[ArtifactProgress]) -> None:
        for part in parts:
            planned = part.planned
            if planned.is_shared:
                self._shared[planned.stage] = part
            else:
                model = self.models.setdefault(planned.subject, ModelProgress(planned.subject, self._clock))
                model.parts[planned.stage] = part

    def hear(self, event: Event) -> str | None:
        """Take in an event; a sentence if a model goes on from where an earlier run was interrupted."""
        self._last_step = LAST_STEPS.get(event.step, self._last_step)
        self._reported = event.fraction if event.step == "report" else self._reported
        model = self.models.get(event.subject)
        part = (model.parts.get(event.step) if model else None) or self._shared.get(event.step)
        if part and part.hear(event, self._clock()):
            return f"{event.subject} goes on from {percent(event.kept)}"
        return None

    @property
    def shared_steps(self) -> set[str]:
        """The stages now in work for all models: text, costs, and in the end the step that comes after all models."""
        return {stage for stage, part in self._shared.items() if part.in_work} | {self._last_step} - {""}

    def key(self, model: str, stage: str) -> str:
        """The name in the store of an artifact of a model, or shared by all; empty if there is none yet."""
        part = self.models[model].parts.get(stage) or self._shared.get(stage)
        return part.key if part else ""

    def in_state(self, state: str) -> list[ModelProgress]:
        """The models that are in a state."""
        return [model for model in self.models.values() if model.state == state]

    def seconds_left(self) -> float:
        """The plan's estimate of what is left, corrected by the pace of what was done so far."""
        left = (replace(part, done=False, seconds=s, in_work=in_work) for part, s, in_work in self._left())
        return seconds_left(left, self._jobs)

    def fraction(self) -> float:
        """The fraction done of what this run has to do, by time; it only grows, whatever is learned of the pace."""
        left, spent = self.seconds_left(), self._clock() - self._began
        left += LAST_SECONDS * (1 - self._reported)
        self._shown = max(self._shown, spent / (spent + left) if left else 1.0)
        return self._shown

    def _left(self) -> Iterable[tuple[PlannedArtifact, float, bool]]:
        """What is to be made, each with the seconds that are left of it, and whether it is in work."""
        now = self._clock()
        work = {id(part): part.work(now) for part in self._parts() if not part.planned.done}
        pace = slowness(work.values())
        failed = {id(part) for model in self.in_state("failed") for part in model.parts.values()}
        for part in self._parts():
            if id(part) in work and id(part) not in failed and part.fraction < 1:
                yield part.planned, rest_of(work[id(part)], pace), part.in_work

    def _parts(self) -> Sequence[ArtifactProgress]:
        return [*self._shared.values(), *(part for model in self.models.values() for part in model.parts.values())]

    def headline(self) -> str:
        """The study in one line: how many models are done, what is done besides, and the time left."""
        in_work = {stage: part for stage, part in self._shared.items() if part.in_work}
        doing = [f"{stage} {_how_far(part)}" for stage, part in in_work.items()]
        failed = len(self.in_state("failed"))
        said = [self._models_done(), f"{failed} failed" if failed else "", *doing, self._last_step]
        if not self._last_step:
            said.append(f"about {duration(self.seconds_left())} left")
        return f"{self.name}: {', '.join(filter(None, said))}"

    def summary(self) -> str:
        """The study's end in one line: its models, and those that this run, or look of a run, has made in this time."""
        made = sum(not all(part.planned.done for part in model.parts.values()) for model in self.in_state("done"))
        of_them = f", {made} of them" if 0 < made < len(self.in_state("done")) else ""
        return f"{self.name}: {self._models_done()}{of_them} in {duration(self._clock() - self._began)}"

    def how_far(self) -> str:
        """The models that a run leaves if it is interrupted now: `: 1 of 4 models done, 2 at 20 % and 35 %`."""
        begun = [*self.in_state("in work"), *self.in_state("waiting")]
        trained = [model for model in begun if model.training.fraction == 1]
        kept = [percent(model.training.kept) for model in begun if model.training.in_work and model.training.kept]
        said = [self._models_done()] if self.in_state("done") else []
        for models, what in ((trained, "trained"), (kept, f"at {_listed(kept)}")):
            if models:
                noun = "" if said else " model" if len(models) == 1 else " models"
                said.append(f"{len(models)}{noun} {what}")
        return f": {', '.join(said)}" if said else " before a model was trained"

    def _models_done(self) -> str:
        return f"{len(self.in_state('done'))} of {len(self.models)} models done"


def _how_far(part: ArtifactProgress) -> str:
    return WAITING if part.state == "waiting" else percent(part.fraction)


def _listed(words: Sequence[str]) -> str:
    """`20 %, 35 % and 40 %`; of many, the first and the last."""
    if len(words) > MAX_NUMBERS:
        return f"{words[0]} to {words[-1]}"
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def percent(fraction: float) -> str:
    """A fraction in percent, never more than there is: `35 %`, and `0.4 %` of a long training's first minutes."""
    return f"{int(1000 * fraction) / 10} %" if 0.001 <= fraction < 0.01 else f"{int(100 * fraction)} %"


def duration(seconds: float) -> str:
    """A duration in one unit: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
