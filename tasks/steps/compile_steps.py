"""Compiling for models before their trainings begin, while text is made."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import islice

from headstream.tasks.errors import WorkError
from headstream.tasks.graph.planning import PlannedArtifact
from headstream.tasks.machines.child_process import call, run_in_process, wait_for_fork_server
from headstream.tasks.machines.gpu_slots import gpu_slot
from headstream.tasks.study.cells import Cell
from headstream.tasks.study.models_at_once import models_at_once
from headstream.tasks.study.schema import Study
from headstream.tasks.training.compiled_kind import Kind, kind_of
from headstream.tasks.training.numerics import resolve_numerics, training_flops

COMPILE = "headstream.tasks.training.compile_ahead:compile_kind"


def compiles(study: Study) -> bool:
    """True if any of a study's trainings is compiled."""
    vocabulary = study.tokenizer.vocabulary
    return any(resolve_numerics(cell.architecture, cell.training, vocabulary)[0].compiled for cell in study.cells)


@contextmanager
def compiling_ahead(study: Study, planned: Sequence[PlannedArtifact]) -> Iterator[None]:
    """While the block makes text, have a thread compile for the trainings that are planned.

    An error elsewhere doesn't wait for that thread.
    """
    to_train = {each.subject for each in planned if each.stage == "training" and not each.done}
    cells = [cell for cell in study.cells if cell.label in to_train]
    begun = threading.Event()
    threading.Thread(target=compile_for, args=(study, cells, begun.is_set), daemon=True).start()
    try:
        yield
    finally:
        begun.set()


def compile_for(study: Study, cells: Sequence[Cell], have_begun: Callable[[], bool]) -> None:
    """Compile what the models that train first will run: as many kinds as models are made at once.

    For a GPU on one, of which it holds a model's share. Once trainings have begun they compile for themselves: one more
    process would only take a core from them.
    """
    vocabulary = study.tokenizer.vocabulary
    kinds = islice(_compiled_kinds(cells, vocabulary), models_at_once(study.resources))
    with suppress(WorkError, OSError):  # a model that needs what could not be compiled says why
        for kind in kinds:
            wait_for_fork_server()  # trainings may have begun when it is there
            if have_begun():
                return
            held: AbstractContextManager[dict[str, str]] = nullcontext({})
            if kind.numerics.device == "cuda":
                held = gpu_slot(study.resources.gpus)
            with held as environment:
                run_in_process(call, COMPILE, kind, vocabulary, environment=environment)


def _compiled_kinds(cells: Sequence[Cell], vocabulary: int) -> Iterator[Kind]:
    """The kinds of trainings that are compiled, each once, those of the longest trainings first."""
    longest_first = sorted(cells, key=lambda cell: -training_flops(cell.architecture, vocabulary, cell.training.tokens))
    seen: set[Kind] = set()
    for cell in longest_first:
        numerics, _ = resolve_numerics(cell.architecture, cell.training, vocabulary)
        kind = kind_of(cell.architecture, cell.training, numerics)
        if numerics.compiled and kind not in seen:
            seen.add(kind)
            yield kind
