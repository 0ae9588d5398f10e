"""The time left, on simulated machines whose speed the plan gets wrong: for all work alike, and for each stage."""

import heapq
import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from headstream.flows.pace import Work, rest_of, slowness
from headstream.flows.study_progress import StudyProgress
from headstream.tasks.graph.planning import PlannedArtifact
from headstream.tasks.progress import Event

GRID = {"training": 100.0, "behaviour": 20.0, "importance": 30.0, "pruning": 60.0, "probes": 10.0}
IMPORTED = {"tokens": 10.0, "import": 60.0, "behaviour": 200.0, "importance": 900.0, "pruning": 600.0, "probes": 150.0}
STUDIES = {
    "a grid": ([f"seed={seed}" for seed in range(6)], GRID),
    "two models": (["n_layers=1", "n_layers=2"], GRID),
    "an imported model": (["model"], IMPORTED),
}
TOLD = {"training": 50, "tokens": 20, "import": 5, "behaviour": 3}  # how often each stage tells how far it is; else 8
WITHIN = 1.5
JOBS = 2


class Machine:
    """A machine that takes so many times as long as planned, for each stage a little more or less."""

    def __init__(self, times: float, models: list[str], stages: dict[str, float], rng: random.Random) -> None:
        self.planned = [PlannedArtifact("corpus", "documents", False, "", 5.0, is_shared=True)]
        for model in models:
            measures = [stage not in ("training", "import", "tokens") for stage in stages]
            self.planned += [
                PlannedArtifact(s, model, False, "", seconds, measures_model=is_measure)
                for (s, seconds), is_measure in zip(stages.items(), measures, strict=True)
            ]
        wrong = {stage: times * 1.2 ** rng.uniform(-1, 1) for stage in ("corpus", *stages)}
        self.seconds = {(p.stage, p.subject): p.seconds * wrong[p.stage] for p in self.planned}
        self.events: list[tuple[float, Event]] = []
        self.end = self._run(models, stages)

    def _run(self, models: list[str], stages: dict[str, float]) -> float:
        """Make what makes models, then what measures them, as soon as one of JOBS is free."""
        start = self._work("corpus", "documents", 0.0)
        free = [start] * JOBS
        ready = {}
        for model in models:
            at = heapq.heappop(free)
            for stage in stages:
                if stage in ("tokens", "training", "import"):
                    at = self._work(stage, model, at)
            heapq.heappush(free, at)
            ready[model] = at
        measures = sorted((s for s in stages if s not in ("tokens", "training", "import")), key=lambda s: -stages[s])
        for model in sorted(models, key=ready.__getitem__):
            for stage in measures:
                at = max(heapq.heappop(free), ready[model])
                heapq.heappush(free, self._work(stage, model, at))
        return max(free)

    def _work(self, stage: str, subject: str, start: float) -> float:
        seconds, n = self.seconds[stage, subject], TOLD.get(stage, 8)
        self.events += [(start + seconds * i / n, Event(stage, subject, i / n)) for i in range(n + 1)]
        return start + seconds


def run_of(machine: Machine) -> Iterator[tuple[float, StudyProgress]]:
    """The study's progress at each hundredth of its time, and that time."""
    now = 0.0
    progress = StudyProgress("s", machine.planned, JOBS, clock=lambda: now)
    events = sorted(machine.events, key=lambda told: told[0])
    for percent in range(100):
        until = machine.end * percent / 100
        while events and events[0][0] <= until:
            now, event = events.pop(0)
            progress.hear(event)
        now = until
        yield now, progress


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("times", [0.3, 1.0, 4.0])
def test_after_a_tenth_the_time_left_is_right_within_a_half(study, times):
    for seed in range(20):
        machine = Machine(times, *STUDIES[study], random.Random(seed))
        for now, progress in run_of(machine):
            left = machine.end - now
            slack = 0.02 * machine.end  # of the last moments
            if now >= machine.end / 10:
                assert left / WITHIN - slack < progress.seconds_left() < left * WITHIN + slack, (seed, now, machine.end)


@pytest.mark.parametrize("study", STUDIES)
def test_the_bar_only_grows_and_is_where_the_time_is(study):
    for times in (0.3, 4.0):
        machine = Machine(times, *STUDIES[study], random.Random(0))
        bars = [(now / machine.end, progress.fraction()) for now, progress in run_of(machine)]
        assert all(before <= after for (_, before), (_, after) in pairwise(bars))
        assert all(abs(shown - true) < 0.2 for true, shown in bars if true > 0.5)


def test_a_stage_that_has_not_begun_is_as_slow_as_the_others():
    slow = slowness([Work("training", 100.0, done=100.0, took=300.0), Work("probes", 100.0, rest=100.0)])
    assert slow["training"] == pytest.approx(3, rel=0.05)
    assert slow["probes"] == pytest.approx((300 + 1) / (100 + 1))
    assert slowness([Work("training", 0.0)]) == {"training": 1.0}


def test_what_is_silent_goes_on_but_never_ends():
    work = Work("importance", 100.0, done=20.0, took=20.0, silent=30.0, rest=80.0)
    assert rest_of(work, {"importance": 1.0}) == 50
    assert rest_of(work, {"importance": 0.5}) == 10
    assert rest_of(Work("importance", 100.0, silent=900.0, rest=100.0), {"importance": 2.0}) == pytest.approx(45)


def test_what_lasts_longer_than_it_should_makes_all_else_slower():
    machine = slowness([Work("import", 50.0, silent=450.0, rest=50.0), Work("probes", 100.0, rest=100.0)])
    assert 8 < machine["probes"] < 11


def test_text_that_is_read_slowly_tells_little_of_models():
    text = Work("corpus", 5.0, done=5.0, took=25.0, weight=0.1)
    slow = slowness([text, Work("training", 1000.0, rest=1000.0)])
    assert slow["training"] < WITHIN
    assert slow["corpus"] > 4
