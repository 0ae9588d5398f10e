"""Finding an artifact in the store or making it, and telling everybody how far that is."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tasks import places
from tasks.machines.child_process import run_in_process
from tasks.progress import Event, publish
from tasks.storage.artifact import Artifact, Spec
from tasks.storage.store import Store

R = TypeVar("R")


def open_store() -> Store:
    """The store of this installation."""
    return Store(places.store_folder())


def find_or_make(
    spec: Spec,
    subject: str,
    work: Callable[..., Mapping[str, Any]],
    *arguments: Any,
    incidental: Collection[str] = (),
    resumable: bool = False,
    show: Callable[[Any], None] | None = None,
    run: Callable[..., Mapping[str, Any]] = run_in_process,
    **options: Any,
) -> Artifact:
    """Find an artifact, or have `work` fill its folder, and publish when that begins, how far it is, and its end."""
    show = show or (lambda fraction: publish(Event(spec.stage, subject, fraction)))
    end = "already there"

    def write(folder: Path) -> Mapping[str, Any]:
        nonlocal end
        end = "done"
        publish(Event(spec.stage, subject, 0.0))
        return run(work, *arguments, folder=folder, on_progress=show, **options)

    artifact = open_store().build(spec, write, incidental=incidental, resumable=resumable)
    publish(Event(spec.stage, subject, 1.0, end))
    return artifact


def run_here(work: Callable[..., R], *arguments: Any, **options: Any) -> R:
    """Do the work in this process: it is short, or uses all cores by itself."""
    return work(*arguments, **options)
