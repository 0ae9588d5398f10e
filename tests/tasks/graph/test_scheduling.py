"""The order of trainings, and that of measuring what they end with."""

import pytest

from headstream.tasks.graph.scheduling import first_finished_first, in_working_order
from headstream.tasks.graph.study_graph import study_graph
from headstream.tasks.study.schema import parse_study


@pytest.fixture(scope="module")
def steps():
    study = parse_study("s", {"name": "s", "grid": {"n_layers": [1, 4, 0, 2]}, "analysis": {"stages": STAGES}})
    return study_graph(study)


STAGES = ["behaviour", "probes", "pruning"]


def n_layers(step) -> str:
    return step.subject.removeprefix("n_layers=")


def test_long_trainings_begin_first_and_short_ones_are_measured_first(steps):
    order = in_working_order(steps, jobs=2)
    assert [n_layers(step) for step in order[:4]] == ["4", "2", "1", "0"]
    assert [n_layers(step) for step in order[4::3]] == ["2", "1", "4", "0"]
    assert first_finished_first(order[:4], jobs=1) == order[:4]


def test_of_what_measures_a_model_the_longest_comes_first(steps):
    order = in_working_order(steps, jobs=2)
    assert len(order) == 4 * (1 + len(STAGES))
    of_the_largest = [step for step in order[4:] if n_layers(step) == "4"]
    assert [step.stage.name for step in of_the_largest] == ["pruning", "probes", "behaviour"]
    assert [step.seconds for step in of_the_largest] == sorted((s.seconds for s in of_the_largest), reverse=True)
