"""A study that trains seeds until its claims are decided, run from look to look, stopped at one, and gone on with."""

import pytest
from small_study import BEHAVIOUR, small_study

from headstream.flows import command_line, plan_command, study
from headstream.flows.study import run_study
from headstream.tasks.graph import finished_study
from headstream.tasks.graph.finished_study import finished_result_lines
from headstream.tasks.graph.looks import at_its_look
from headstream.tasks.study.sources import StudyFile

pytestmark = pytest.mark.usefixtures("prefect_server", "home")
KIND = "n_layers=0"


def grown_study(at_most: int = 5):
    grid = {"n_layers": [0], "seed": {"until": "decided", "at_most": at_most}}
    return small_study(name="grown", grid=grid, analysis=BEHAVIOUR)


@pytest.fixture(autouse=True)
def one_more_look(monkeypatch):
    """Models as small as these learn nothing that claims look at: here, something is undecided until the last look."""

    def next_look(own):
        more = own.until_decided.next_look(KIND)
        return own.with_seeds({KIND: more}) if more else None

    monkeypatch.setattr(study, "next_look", next_look)
    monkeypatch.setattr(finished_study, "next_look", next_look)


def test_it_stops_at_a_look_if_the_next_one_would_take_too_long():
    run_study(grown_study(), within_hours=0)
    assert len(at_its_look(grown_study()).cells) == 3
    assert finished_result_lines(grown_study()) is None, "more seeds are to come"


def test_it_goes_on_from_there_to_the_last_look():
    report = run_study(grown_study())
    assert len(at_its_look(grown_study()).cells) == 5
    assert report.exists()
    assert finished_result_lines(grown_study())[-1] == f"Report: {report}"


def test_more_seeds_may_be_allowed_later():
    assert len(at_its_look(grown_study(at_most=9)).cells) == 5
    assert len(at_its_look(grown_study(at_most=3)).cells) == 3


def test_the_plan_says_the_least_and_the_most(capsys):
    plan_command.print_plan(grown_study(at_most=9), StudyFile("grown.toml", ""), False)
    said = " ".join(capsys.readouterr().out.split())
    assert "until claims are decided: 5 models (1 kind) at least, 9 (9 seeds of each kind) at most" in said


def test_a_time_limit_is_for_such_studies_alone(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["headstream", "run", "quick", "--within", "2h"])
    with pytest.raises(SystemExit) as stop:
        command_line.main()
    assert stop.value.code == 2
    assert "--within is for studies that add seeds until claims are decided" in capsys.readouterr().err
