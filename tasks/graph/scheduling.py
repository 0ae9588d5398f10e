"""The order in which models are made and measured, so that no core waits while there is work."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence

from headstream.tasks.graph.step import Step, StepName


def in_working_order(steps: Iterable[Step], jobs: int) -> list[Step]:
    """The steps of models: first what makes them, then what measures them, in the order in which models are ready.

    Imports come before trainings, and long trainings before short ones: none is left to the end. Of what measures a
    model, the longest comes first, for the same reason. Models that wait for what is measured of others come after.
    """
    steps = list(steps)
    measuring = {step.name for step in steps if step.measures_model}
    waiting = {step.name for step in steps if step.makes_model and measuring & {*step.inputs.values()}}
    if waiting:
        later = [step for step in steps if {step.name, step.inputs.get("model")} & waiting]
        first = [step for step in steps if step not in later]
        return [*_models_first(first, jobs), *_models_first(later, jobs)]
    return _models_first(steps, jobs)


def _models_first(steps: Sequence[Step], jobs: int) -> list[Step]:
    makers = sorted((step for step in steps if step.makes_model), key=_import_or_longest)
    measures: dict[StepName, list[Step]] = defaultdict(list)
    for step in steps:
        if step.measures_model:
            measures[step.inputs["model"]].append(step)
    ready = first_finished_first(makers, jobs)
    by_model = [sorted(measures[maker.name], key=lambda step: -step.seconds) for maker in ready]
    return [*makers, *(step for own in by_model for step in own)]


def first_finished_first(makers: Sequence[Step], jobs: int) -> list[Step]:
    """The order in which steps end that begin in their own order, so many at once."""
    free_at, ends = [0.0] * jobs, []
    for place, step in enumerate(makers):
        end = heapq.heappop(free_at) + step.seconds
        heapq.heappush(free_at, end)
        ends.append((end, place))
    return [makers[place] for _, place in sorted(ends)]


def _import_or_longest(step: Step) -> tuple[bool, float]:
    return step.stage.name == "training", -step.seconds
