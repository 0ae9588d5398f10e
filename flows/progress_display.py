"""Progress of a run: live bars in a terminal, plain lines in a file."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tasks.progress import Event, listening

PLAIN_SECONDS = 20.0


@contextmanager
def shown_progress(console: Console) -> Iterator[None]:
    """Show the progress of every step while the block runs."""
    if not console.is_terminal:
        with listening(_PlainLines(console)):
            yield
        return
    columns = [
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[text]}"),
    ]
    with Progress(*columns, console=console) as progress, listening(_Bars(progress)):
        yield


class _Bars:
    """Live bars, one for each step of each model."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.tasks: dict[tuple[str, str], TaskID] = {}

    def __call__(self, event: Event) -> None:
        key = event.step, event.subject
        if key not in self.tasks:
            self.tasks[key] = self.progress.add_task(f"{event.step:<10} {event.subject}", total=1.0, text="")
        self.progress.update(self.tasks[key], completed=event.fraction, text=event.text)
        if event.fraction >= 1:
            self.progress.stop_task(self.tasks[key])


class _PlainLines:
    """Plain lines: one when a step begins, one when it ends, and one every PLAIN_SECONDS between."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.printed: dict[tuple[str, str], float] = {}

    def __call__(self, event: Event) -> None:
        key, now = (event.step, event.subject), time.monotonic()
        if event.fraction < 1 and now - self.printed.get(key, -PLAIN_SECONDS) < PLAIN_SECONDS:
            return
        self.printed[key] = now
        text = event.text or ("started" if event.fraction == 0 else "")
        self.console.print(
            f"{time.strftime('%H:%M:%S')} {event.step:<10} {event.subject:<24} {event.fraction:>4.0%}  {text}",
            highlight=False,
            soft_wrap=True,
            markup=False,
        )
