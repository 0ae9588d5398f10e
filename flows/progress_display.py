"""Shows a run's progress: as a live picture in a terminal, as plain lines in a file."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
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
_OTHER_LINES = 4  # of a terminal: the study's own, wrapped ones, and the summary of other models


@contextmanager
def shown_progress(study: StudyProgress, file: TextIO) -> Iterator[None]:
    """Show a study's progress while the block runs."""
    console = Console(file=file, highlight=False)
    if not console.is_terminal:
        lines, one_at_a_time = PlainLines(study, console), threading.Lock()

        def print_changes(event: Event) -> None:
            with one_at_a_time:
                notice = study.hear(event)
                if notice:
                    lines.say(notice)
                lines.look(study)

        def look_again() -> None:
            with one_at_a_time:
                lines.look(study)

        with listening(print_changes), _repeated(look_again):
            yield
        lines.say(study.summary())
        return

    def print_notice(event: Event) -> None:
        notice = study.hear(event)
        if notice:
            console.print(Text(notice))

    def picture() -> Group:
        return study_picture(study, console)

    live = Live(console=console, get_renderable=picture, transient=True, redirect_stdout=False, redirect_stderr=False)
    with live, listening(print_notice):
        yield
    console.print(Text(study.summary()))


@contextmanager
def _repeated(look: Callable[[], None]) -> Iterator[None]:
    """Call a function every PLAIN_SECONDS during the block: long work may have nothing to tell for minutes."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(PLAIN_SECONDS):
            look()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def shown_waiting(what: str, file: TextIO) -> Iterator[None]:
    """Show what the block waits for: in a terminal for as long as it waits, in a file as a line."""
    console = Console(file=file, highlight=False)
    if console.is_terminal:
        with console.status(what):
            yield
        return
    console.print(Text(f"{time.strftime('%H:%M:%S')} {what}"), soft_wrap=True)
    yield


def study_picture(study: StudyProgress, console: Console) -> Group:
    """A line for the study, one for each model in work, as far as they fit, and one that counts the others."""
    in_work = study.in_state("in work")
    shown = in_work[: max(1, console.height - _OTHER_LINES)]
    return Group(*summary_lines(study), model_lines(shown, console), *other_models(study, len(shown)))


def summary_lines(study: StudyProgress) -> list[RenderableType]:
    """The study in a line and a bar."""
    bar = Table.grid(padding=(0, 2, 0, 0))
    bar.add_row(ProgressBar(total=1.0, completed=study.fraction(), width=24), percent(study.fraction()))
    return [Text(study.headline()), bar]


def model_lines(models: Sequence[ModelProgress], console: Console) -> Table:
    """A line for each model in work."""
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
    """A line that counts the models without a line of their own, if there are any."""
    others = {"more in work": len(study.in_state("in work")) - n_shown, "waiting": len(study.in_state("waiting"))}
    counted = ", ".join(f"{n} {what}" for what, n in others.items() if n)
    return [Text(counted, style="dim")] if counted else []


class PlainLines:
    """Prints a line when a model enters a new phase or the study a new step, and a summary every PLAIN_SECONDS."""

    def __init__(self, study: StudyProgress, console: Console) -> None:
        self._console = console
        self._phases = {model.name: model.phase for model in study.models.values()}
        self._steps: set[str] = set()
        self._summed_up = time.monotonic()

    def look(self, study: StudyProgress) -> None:
        """Print what has changed since the last call, and a summary if the last one was long ago."""
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
        """Print the progress of the study and of each model in work."""
        self._summed_up = time.monotonic()
        self.say(study.headline())
        for model in study.in_state("in work"):
            self.say(_described(model))

    def say(self, line: str) -> None:
        """Print a line with the time of day."""
        self._console.print(Text(f"{time.strftime('%H:%M:%S')} {line}"), soft_wrap=True)


def _described(model: ModelProgress) -> str:
    return ", ".join(filter(None, (f"{model.name}: {model.phase} {percent(model.fraction)}", model.details)))
