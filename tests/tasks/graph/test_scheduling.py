"""The order of trainings, and that of measuring what they end with."""

from headstream.models.architecture import Architecture
from headstream.tasks.graph.scheduling import first_finished_first, longest_first, longest_stages_first
from headstream.tasks.measuring.stages import ANALYSES
from headstream.tasks.study.cells import Cell
from headstream.tasks.study.training_config import TrainingConfig


def test_long_trainings_begin_first_and_short_ones_are_measured_first():
    cells = [Cell(str(n), Architecture(n_layers=n), TrainingConfig(), ()) for n in (1, 4, 0, 2)]
    started = longest_first(cells, 512)
    assert [cell.label for cell in started] == ["4", "2", "1", "0"]
    assert [cell.label for cell in first_finished_first(started, 512, jobs=2)] == ["2", "1", "4", "0"]
    assert first_finished_first(started, 512, jobs=1) == started


def test_every_stage_has_its_turn():
    assert longest_stages_first(["behaviour", "probes", "pruning"]) == ["pruning", "probes", "behaviour"]
    assert sorted(longest_stages_first(ANALYSES)) == sorted(ANALYSES)
