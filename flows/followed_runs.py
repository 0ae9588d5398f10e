"""Runs of this process, followed: by who watches from elsewhere, and by the terminal, if a command has given one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from headstream.flows.study_progress import StudyProgress
from headstream.tasks.graph.planning import PlannedArtifact
from headstream.tasks.progress import listening
from headstream.tasks.watching.run_snapshots import snapshots_kept

Display = Callable[[StudyProgress], AbstractContextManager[None]]  # while it is open, it has a study hear its events


def _no_display(study: StudyProgress) -> AbstractContextManager[None]:
    return listening(study.hear)


_display: ContextVar[Display] = ContextVar("display", default=_no_display)


@contextmanager
def displayed_by(display: Display) -> Iterator[None]:
    """Have a display show the runs of this block."""
    token = _display.set(display)
    try:
        yield
    finally:
        _display.reset(token)


@contextmanager
def shown_and_kept(name: str, planned: Sequence[PlannedArtifact], jobs: int) -> Iterator[None]:
    """While the block runs a study, show how far it is, and leave that for who watches."""
    progress = StudyProgress(name, planned, jobs)
    with _display.get()(progress), snapshots_kept(name, progress.snapshot):
        yield
