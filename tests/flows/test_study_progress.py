"""How far a study is, from its plan and the events of its steps."""

import json

import pytest

from headstream.flows.study_progress import StudyProgress, duration, percent
from headstream.tasks.graph.planning import PlannedArtifact
from headstream.tasks.progress import Event

LABELS = ("d_model=32 seed=0", "d_model=32 seed=1", "d_model=64 seed=0")


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def planned(stage: str, subject: str, seconds: float, done: bool = False) -> PlannedArtifact:
    kind = {"is_shared": stage == "corpus", "measures_model": stage == "probes"}
    return PlannedArtifact(stage, subject, done, "not made yet", seconds, **kind)


@pytest.fixture
def study(clock) -> StudyProgress:
    """Three models: 100 s of training each, 20 s of measuring; two at a time."""
    models = [planned(s, label, n) for label in LABELS for s, n in (("training", 100.0), ("probes", 20.0))]
    return StudyProgress("quick", [planned("corpus", "documents", 10.0), *models], 2, clock)


def test_before_anything_the_time_left_is_the_plans(study):
    assert study.seconds_left() == 10 + 2 * 100 + 20
    assert study.headline() == "quick: 0 of 3 models done, about 4 min left"
    assert study.fraction() == 0


def test_time_left_follows_what_was_measured(study, clock):
    study.hear(Event("corpus", "documents", 1.0))
    study.hear(Event("training", LABELS[0], 0.0))
    clock.now = 100.0  # twice as slow as planned
    study.hear(Event("training", LABELS[0], 0.5))
    of_all = (100 + 0.005 * 370) / (50 + 0.005 * 370)
    of_training = (100 + 0.03 * 300 * of_all) / (50 + 0.03 * 300)
    assert study.seconds_left() == pytest.approx(150 * of_training + 20 * of_all)


def test_compiling_says_nothing_of_speed(study, clock):
    study.hear(Event("corpus", "documents", 1.0))
    study.hear(Event("training", LABELS[0], 0.0))
    study.hear(Event("training", LABELS[0], 0.0, state="compiling"))
    assert study.models[LABELS[0]].phase == "compiling"
    clock.now = 40.0
    assert study.models[LABELS[0]].details == "for 40 s, up to a minute the first time"
    clock.now = 1000.0
    study.hear(Event("training", LABELS[0], 0.0))
    assert study.models[LABELS[0]].phase == "training"
    clock.now = 1050.0
    study.hear(Event("training", LABELS[0], 0.5))
    assert study.seconds_left() == pytest.approx(150 + 20)


def test_waiting_for_another_run_is_told_and_says_nothing_of_speed(study, clock):
    study.hear(Event("corpus", "documents", 0.0, state="waiting"))
    assert "corpus waiting for another run" in study.headline()
    clock.now = 1000.0
    study.hear(Event("corpus", "documents", 1.0))
    study.hear(Event("training", LABELS[0], 0.0, state="waiting"))
    assert study.models[LABELS[0]].details == "waiting for another run"
    clock.now = 2000.0
    study.hear(Event("training", LABELS[0], 0.0))
    clock.now = 2050.0
    study.hear(Event("training", LABELS[0], 0.5))
    assert study.seconds_left() == pytest.approx(150 + 20)


def test_what_an_earlier_run_did_says_nothing_of_speed_and_is_told(study, clock):
    study.hear(Event("corpus", "documents", 1.0))
    study.hear(Event("training", LABELS[0], 0.0))
    clock.now = 5.0
    assert study.hear(Event("training", LABELS[0], 0.35, kept=0.35)) == "d_model=32 seed=0 goes on from 35 %"
    clock.now = 15.0
    assert study.hear(Event("training", LABELS[0], 0.45, kept=0.35)) is None
    assert study.seconds_left() == pytest.approx(155 + 20)


def test_an_interrupted_run_is_said_to_keep_what_it_saved(study):
    assert study.how_far() == " before a model was trained"
    study.hear(Event("training", LABELS[0], 0.0))
    assert study.how_far() == " before a model was trained"
    study.hear(Event("training", LABELS[0], 0.209, kept=0.2))
    assert study.how_far() == ": 1 model at 20 %"
    study.hear(Event("training", LABELS[1], 0.4, kept=0.359))
    assert study.how_far() == ": 2 models at 20 % and 35 %"
    study.hear(Event("training", LABELS[0], 1.0))
    assert study.how_far() == ": 1 model trained, 1 at 35 %"
    study.hear(Event("probes", LABELS[0], 1.0))
    assert study.how_far() == ": 1 of 3 models done, 1 at 35 %"


def test_a_model_is_done_when_it_is_trained_and_measured(study):
    study.hear(Event("training", LABELS[0], 1.0))
    assert study.models[LABELS[0]].phase == "waiting"
    study.hear(Event("probes", LABELS[0], 0.0))
    assert (study.models[LABELS[0]].phase, study.models[LABELS[0]].details) == ("measuring", "probes")
    study.hear(Event("probes", LABELS[0], 1.0))
    study.hear(Event("probes", LABELS[0], 1.0))  # found again
    assert study.models[LABELS[0]].phase == "done"


def test_what_is_there_already_counts_as_done():
    study = StudyProgress("quick", [planned("training", label, 9.0, done=True) for label in LABELS], 2)
    assert study.headline() == "quick: 3 of 3 models done, about 0 s left"
    study.hear(Event("report", "quick", 0.0))
    assert study.headline() == "quick: 3 of 3 models done, reporting"
    assert study.fraction() < 1
    study.hear(Event("report", "quick", 1.0))
    assert study.fraction() == 1


@pytest.mark.parametrize(
    ("there", "told"), [(0, "3 of 3 models done in 60 s"), (2, "3 of 3 models done, 1 of them in 60 s")]
)
def test_the_time_at_the_end_is_of_what_was_made_in_it(clock, there, told):
    """A study that trains seeds until its claims are decided has an end at each look."""
    models = [planned("training", label, 9.0, done=place < there) for place, label in enumerate(LABELS)]
    study = StudyProgress("quick", models, 2, clock)
    for label in LABELS[there:]:
        study.hear(Event("training", label, 1.0))
    clock.now = 60.0
    assert study.summary() == f"quick: {told}"


def test_a_model_that_failed_is_waited_for_no_more(study):
    study.hear(Event("training", LABELS[0], 0.5))
    study.hear(Event("training", LABELS[0], 0.0, state="failed"))
    assert study.headline() == "quick: 0 of 3 models done, 1 failed, about 2 min left"
    study.hear(Event("training", LABELS[0], 0.0))  # tried again
    assert study.in_state("in work") == [study.models[LABELS[0]]]


def test_events_of_what_nobody_planned_change_nothing(study):
    before = study.headline()
    assert study.hear(Event("elsewhere", "another model", 0.5)) is None
    assert study.headline() == before


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (9000, "2.5 h")]
)
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_percent_never_says_more_than_there_is():
    assert [percent(f) for f in (0, 0.0049, 0.359, 0.999, 1)] == ["0 %", "0.4 %", "35 %", "99 %", "100 %"]


def test_another_process_is_told_all_of_it(study, clock):
    study.hear(Event("corpus", "documents", 1.0, key="c"))
    study.hear(Event("training", LABELS[0], 0.0, key="t"))
    clock.now = 30.0
    study.hear(Event("training", LABELS[0], 0.5, "loss 3.1 nats", 0.4))
    study.hear(Event("training", LABELS[1], 1.0, key="u"))
    study.hear(Event("probes", LABELS[1], 0.0))
    study.hear(Event("training", LABELS[2], 0.0, state="failed"))
    told = StudyProgress.of_snapshot(json.loads(json.dumps(study.snapshot())))
    for what in ("headline", "how_far", "fraction", "seconds_left"):
        assert getattr(told, what)() == getattr(study, what)()
    said = [(model.name, model.phase, model.details, model.fraction) for model in told.models.values()]
    assert said == [(model.name, model.phase, model.details, model.fraction) for model in study.models.values()]
    assert [told.key(LABELS[0], stage) for stage in ("training", "corpus", "probes", "nothing")] == ["t", "c", "", ""]
    study.hear(Event("report", "quick", 0.0))
    assert StudyProgress.of_snapshot(study.snapshot()).headline() == study.headline()


@pytest.mark.parametrize("change", [{"jobs": 2}, {"parts": [{"planned": {"stage": "probes"}}]}, {"parts": [{"x": 1}]}])
def test_what_another_release_tells_is_not_understood(study, change):
    told = study.snapshot() | change
    del told["last_step"]
    with pytest.raises((TypeError, LookupError)):
        StudyProgress.of_snapshot(told)
