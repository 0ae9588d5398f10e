"""Finding an artifact in the store or making it, and telling everybody how far that is."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from headstream.tasks import places
from headstream.tasks.machines.child_process import run_in_process, start_fork_server
from headstream.tasks.progress import FAILED, WAITING, Event, publish
from headstream.tasks.storage.artifact import Artifact, Spec
from headstream.tasks.storage.store import Store


def open_store() -> Store:
    """The store of this installation."""
    return Store(places.store_folder())


@contextmanager
def store_in_use() -> Iterator[None]:
    """`gc` removes nothing while the block, or the function that this decorates, runs."""
    with open_store().shared_lock():
        yield


def prepare() -> None:
    """Start what later steps would wait for, and clear what killed runs left."""
    start_fork_server()
    open_store().sweep()


def find_or_make(
    spec: Spec,
    subject: str,
    work: Callable[..., Mapping[str, Any]],
    *arguments: Any,
    incidental: Collection[str] = (),
    resumable: bool = False,
    on_progress: Callable[[Any], None] | None = None,
    apart: bool = True,
    holding: AbstractContextManager[Mapping[str, str]] | None = None,
    **options: Any,
) -> Artifact:
    """Find an artifact, or have `work` fill its folder, and publish when that begins, how far it is, and its end.

    The work is done in a process apart, while what it needs is held and gives that its environment; or in this one, if
    it is short, uses all cores by itself, or has processes of its own.
    """
    show = on_progress or (lambda fraction: publish(Event(spec.stage, subject, fraction, key=spec.key)))

    def write(folder: Path) -> Mapping[str, Any]:
        publish(Event(spec.stage, subject, 0.0, key=spec.key))
        if not apart:
            return work(*arguments, folder=folder, on_progress=show, **options)
        with holding or nullcontext() as environment:
            return run_in_process(work, *arguments, folder=folder, on_progress=show, environment=environment, **options)

    def wait() -> None:
        publish(Event(spec.stage, subject, 0.0, WAITING, key=spec.key))

    try:
        artifact = open_store().build(spec, write, incidental=incidental, resumable=resumable, on_wait=wait)
    except Exception:
        publish(Event(spec.stage, subject, 0.0, FAILED))
        raise
    publish(Event(spec.stage, subject, 1.0, key=spec.key))
    return artifact
