"""The pace of a run: the seconds that work takes for each that was planned, as far as it has been measured."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

MACHINE_PRIOR = 0.005  # of all that is planned: after so much of it, measured pace weighs as much as the plan's
STAGE_PRIOR = 0.03  # of what is planned of a stage: after so much, its own pace weighs as much as that of all stages
NEARLY = 0.95  # of the work that is taken to be done once it has lasted longer than all of it should


@dataclass(frozen=True)
class Work:
    """Work on one artifact: all of it and what this run has done, in planned seconds, and the seconds that took."""

    stage: str
    planned: float
    done: float = 0.0
    took: float = 0.0
    silent: float = 0.0
    """Seconds since it last told how far it is; 0 when it isn't in work."""
    rest: float = 0.0
    """What is left of it, in planned seconds."""
    weight: float = 1.0
    """How much its pace tells of that of other stages: reading text tells little of models."""


def slowness(work: Iterable[Work]) -> dict[str, float]:
    """Seconds that each stage takes for each that was planned of it.

    One that hasn't begun is as slow as all others are together, so that a machine's speed shows before its last stage.

    >>> slowness([Work("training", 100, done=100, took=300), Work("probes", 100)])["probes"] > 2.9
    True
    """
    work = list(work)
    stages: dict[str, list[Work]] = defaultdict(list)
    for each in work:
        stages[each.stage].append(each)
    told = _ratio(work, MACHINE_PRIOR, 1.0, weighted=True)
    machine = _ratio((_told(each, told) for each in work), MACHINE_PRIOR, 1.0, weighted=True)
    return {
        stage: _ratio((_told(each, machine) for each in own), STAGE_PRIOR, machine) for stage, own in stages.items()
    }


def rest_of(work: Work, slow: Mapping[str, float]) -> float:
    """Seconds that are left of one artifact.

    What is silent goes on meanwhile; what lasts longer than it should is taken to be nearly done, never to be done.
    """
    left = work.rest * slow[work.stage]
    if not work.silent:
        return left
    return max(left - work.silent, (1 - NEARLY) * max(left, work.silent))


def _ratio(work: Iterable[Work], prior: float, expected: float, weighted: bool = False) -> float:
    """Seconds for each planned one, where so large a part of all was as slow as expected."""
    work = list(work)
    assumed = prior * sum(each.planned for each in work)
    weights = [each.weight if weighted else 1.0 for each in work]
    took = sum(weight * each.took for weight, each in zip(weights, work, strict=True))
    done = sum(weight * each.done for weight, each in zip(weights, work, strict=True))
    return (took + assumed * expected) / (done + assumed) if assumed else expected


def _told(work: Work, expected: float) -> Work:
    """The same work; if it was silent for longer than its rest should take, as if it had told that it nearly ends."""
    pace = work.took / work.done if work.done else expected
    if work.silent <= NEARLY * work.rest * pace:
        return work
    return replace(work, done=work.done + NEARLY * work.rest, took=work.took + work.silent)
