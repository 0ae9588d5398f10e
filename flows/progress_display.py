"""Progress of a run: a live picture in a terminal, plain lines in a file."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from headstream.flows.study_progress import ModelProgress, StudyProgress, percent
from headstream.tasks.progress import Event, listening

PLAIN_SECONDS = 20.0
OTHER_LINES = 4  # of a terminal: the study's, those that it wraps to, and what sums up models


@contextmanager
def shown_progress(study: StudyProgress, file: TextIO) -> Iterator[None]:
    """Show how far a study is while the block runs."""
    console = Console(file=file, highlight=False)
    if not console.is_terminal:
        lines = PlainLines(study, console)

        def tell(event: Event) -> None:
            if notice := study.hear(event):
                lines.say(notice)
            lines.look(study)

        with listening(tell):
            yield
        lines.say(study.summary())
        return

    def hear(event: Event) -> None:
        if notice := study.hear(event):
            console.print(Text(notice))

    def picture() -> Group:
        return study_picture(study, console)

    live = Live(console=console, get_renderable=picture, transient=True, redirect_stdout=False, redirect_stderr=False)
    with live, listening(hear):
        yield
    console.print(Text(study.summary()))


def study_picture(study: StudyProgress, console: Console) -> Group:
    """A line for the study, one for each model in work as far as they fit, and one that counts the others."""
    in_work = study.in_state("in work")
    shown = in_work[: max(1, console.height - OTHER_LINES)]
    return Group(*summary_lines(study), model_lines(shown, console), *other_models(study, len(shown)))


def summary_lines(study: StudyProgress) -> list[RenderableType]:
    """The study in a line and a bar."""
    bar = Table.grid(padding=(0, 2, 0, 0))
    bar.add_row(ProgressBar(total=1.0, completed=study.fraction(), width=24), percent(study.fraction()))
    return [Text(study.headline()), bar]


def model_lines(models: Sequence[ModelProgress], console: Console) -> Table:
    """A line for each model that is in work."""
    table = Table.grid(padding=(0, 2, 0, 0))
    phase, share = len("tokenising"), len("100 %")
    room = console.width - phase - share - 6  # for a name and the details, the latter at least a fifth
    name = min(max((len(model.name) for model in models), default=0), 4 * room // 5)
    for width in (name, phase, share, room - name):
        table.add_column(max_width=width, no_wrap=True, overflow="ellipsis")
    for model in models:
        fraction = "" if model.phase == "compiling" else f"{percent(model.fraction):>5}"
        table.add_row(Text(model.name), model.phase, fraction, Text(model.details, style="dim"))
    return table


def other_models(study: StudyProgress, n_shown: int) -> list[Text]:
    """A line that counts the models of which no line is shown, unless there are none."""
    others = {"more in work": len(study.in_state("in work")) - n_shown, "waiting": len(study.in_state("waiting"))}
    counted = ", ".join(f"{n} {what}" for what, n in others.items() if n)
    return [Text(counted, style="dim")] if counted else []


class PlainLines:
    """A line when a model comes to another phase or the study to another step, and how all are every PLAIN_SECONDS."""

    def __init__(self, study: StudyProgress, console: Console) -> None:
        self._console = console
        self._phases = {model.name: model.phase for model in study.models.values()}
        self._steps: set[str] = set()
        self._summed_up = time.monotonic()

    def look(self, study: StudyProgress) -> None:
        """Say what has changed since the last look, and if that was long ago, how all are."""
        is_time = time.monotonic() - self._summed_up >= PLAIN_SECONDS
        new = study.shared_steps - self._steps
        self._steps |= new
        if new and not is_time:
            self.say(study.headline())
        for model in study.models.values():
            if model.phase not in ("waiting", self._phases[model.name]):
                self._phases[model.name] = model.phase
                self.say(f"{model.name}: {model.phase}")
        if is_time:
            self.sum_up(study)

    def sum_up(self, study: StudyProgress) -> None:
        """Say how far the study is, and each model in work."""
        self._summed_up = time.monotonic()
        self.say(study.headline())
        for model in study.in_state("in work"):
            self.say(_described(model))

    def say(self, line: str) -> None:
        """Print a line with the time of day."""
        self._console.print(Text(f"{time.strftime('%H:%M:%S')} {line}"), soft_wrap=True)


def _described(model: ModelProgress) -> str:
    return ", ".join(filter(None, (f"{model.name}: {model.phase} {percent(model.fraction)}", model.details)))
