"""Each detector and interval, tried a few times; when a trial holds; the page shows the trials that there are."""

import pytest
from scipy.stats import binom

from calibration import circuits
from calibration.every_trial import TRIALS
from calibration.page import PAGE, page
from calibration.trials import Row, Trial

OTHERS = [trial for trial in TRIALS if trial not in circuits.TRIALS]  # those have test_planted_circuits.py
ONE_OF_EACH = {(trial.kind, trial.what): trial for trial in reversed(OTHERS)}.values()


@pytest.mark.parametrize("trial", ONE_OF_EACH, ids=lambda trial: f"{trial.kind}, {trial.what}")
def test_a_few_tries_do_not_fail(trial: Trial):
    assert trial.run(trial.few).verdict != "fails"


@pytest.mark.parametrize(
    ("kind", "bar", "hits", "verdict"),
    [
        ("false positives", 0.05, 5, "holds"),
        ("false positives", 0.05, 8, "within chance"),
        ("false positives", 0.05, 13, "fails"),
        ("power", 0.9, 90, "holds"),
        ("power", 0.9, 86, "within chance"),
        ("power", 0.9, 80, "fails"),
        ("coverage", 0.93, 93, "holds"),
        ("coverage", 0.93, 0, "fails"),
    ],
)
def test_verdicts_of_a_hundred_tries(kind, bar, hits, verdict):
    assert Row(kind, "detector", "models", bar, n=100, hits=hits).verdict == verdict


def test_the_interval_ends_where_as_much_is_as_likely_as_said():
    low, high = Row("power", "detector", "models", 0.9, n=40, hits=36).interval
    assert binom.sf(35, 40, low) == pytest.approx(0.025)
    assert binom.cdf(36, 40, high) == pytest.approx(0.025)


def test_tries_are_the_same_each_time():
    for trial in TRIALS[:2]:
        assert trial.run(50) == trial.run(50)


def test_the_page_shows_every_trial_under_its_kind():
    rows = [
        Row("coverage", "interval", "5 seeds", 0.93, n=100, hits=95),
        Row("false positives", "detector", "random weights", 0.05, n=1000, hits=100),
    ]
    shown = page(rows)
    assert "2 trials, 1,100 tries" in shown
    assert "Here 1 hold, 1 fail." in shown
    assert "| interval | 5 seeds | 100 | ≥ 0.93 | 0.950 | 0.887 to 0.984 | holds |" in shown
    assert shown.index("Where there is nothing") < shown.index("| detector | random weights | 1,000 | ≤ 0.05 | 0.100")
    assert "**fails**" in shown


def test_the_page_is_of_the_trials_there_are():
    shown = [
        line.split(" | ")[:3] for line in PAGE.read_text().splitlines() if " | holds |" in line or "chance |" in line
    ]
    assert {("| " + trial.what, trial.tried_on, f"{trial.n:,}") for trial in TRIALS} == {
        tuple(cells) for cells in shown
    }
