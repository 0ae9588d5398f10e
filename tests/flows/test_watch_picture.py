"""The picture of a study that is running: curves, scores, and that it fits the terminal."""

import io

import pytest
from rich.console import Console

from headstream.flows.study_progress import StudyProgress
from headstream.flows.watch_picture import (
    BLOCKS,
    CURVE_MARGIN,
    NOT_MEASURED_YET,
    loss_curve,
    score_lines,
    scores_in_words,
    watch_picture,
)
from headstream.tasks.graph.planning import PlannedArtifact
from headstream.tasks.progress import Event
from headstream.tasks.watching.models_so_far import ScoresSoFar

FALLING = [(round(1000 * 2 ** (i / 4)), 5.0 - i / 8) for i in range(33)]  # straight over ln(tokens)
SCORES = ScoresSoFar(
    validation=[(0, 5.7), (100_000, 3.2), (1_234_000, 2.531)],
    sem=0.03,
    n_windows=32,
    preliminary=True,
    best={"induction": [("L1H0", 0.634), ("L1H2", 0.12)], "previous token": []},
)
WORDS = "2.531 ± 0.030 nats after 1.2 M tokens, preliminary (32 sequences)"


def heights(rows: list[str]) -> list[int]:
    """How high each column of an area is, in eighths of a row."""
    return [sum(BLOCKS.index(row[column]) for row in rows) for column in range(len(rows[0]))]


def curve(losses, width: int = 33, height: int = 4) -> list[int]:
    *rows, axis = loss_curve(losses, width, height)
    assert {len(line) for line in (*rows, axis)} == {width + CURVE_MARGIN}
    return heights([row[CURVE_MARGIN:] for row in rows])


def test_what_is_straight_over_the_logarithm_of_tokens_is_drawn_straight():
    drawn = curve(FALLING, width=len(FALLING))
    assert drawn == [pytest.approx(32 - 31 * place / 32, abs=0.51) for place in range(33)]


def test_the_labels_are_the_highest_and_the_lowest_loss():
    first, *_, last, axis = loss_curve(FALLING, 60, 4)
    assert (float(first[:CURVE_MARGIN]), float(last[:CURVE_MARGIN])) == (5.0, 1.0)
    assert axis.split("training loss, nats")[0].split() == ["1.0", "k", "tokens"]
    assert axis.endswith("256 k tokens")


def test_a_place_with_many_losses_has_their_mean():
    noisy = [(step, 3.0 + (-1) ** step) for step in range(1000, 100_000)]
    *rows, _ = loss_curve(noisy, 10, 4)
    assert float(rows[0][:CURVE_MARGIN]) == pytest.approx(3.0, abs=0.01)
    assert float(rows[-1][:CURVE_MARGIN]) == pytest.approx(3.0, abs=0.01)


@pytest.mark.parametrize("losses", [[], [(1000, 3.0)]])
def test_without_two_losses_there_is_no_curve(losses):
    assert loss_curve(losses, 40, 4) == []


def test_equal_losses_are_no_error():
    assert set(curve([(1000, 3.0), (2000, 3.0)])) == {1}


def test_scores_are_said_with_what_they_are_worth():
    assert scores_in_words(SCORES) == f"validation loss {WORDS}; induction L1H0 0.63, L1H2 0.12"
    first, second = score_lines(SCORES)
    assert first == f"  validation loss {WORDS} █▂▁"
    assert second.split() == ["induction", "L1H0", "0.63", "L1H2", "0.12"]


def study(n_models: int, n_failed: int = 0) -> StudyProgress:
    labels = [f"n_layers=2 n_heads=8 seed={i}" for i in range(n_models + n_failed + 2)]
    progress = StudyProgress("quick", [PlannedArtifact("training", label, False, "", 60.0) for label in labels], 2)
    for label in labels[:n_models]:
        progress.hear(Event("training", label, 0.35, "loss 3.100 nats, 90,000 tokens/s"))
    for label in labels[n_models : n_models + n_failed]:
        progress.hear(Event("training", label, 0.0, state="failed"))
    return progress


def picture(progress: StudyProgress, width: int, height: int, scores=SCORES) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height)
    every = dict.fromkeys(progress.models, scores)
    console.print(watch_picture(progress, lambda label: FALLING, every, console))
    return console.file.getvalue().splitlines()


def test_a_model_in_training_has_its_curve_and_its_heads():
    lines = picture(study(1), 100, 30)
    assert lines[0].startswith("quick: 0 of 3 models done, about ")
    assert lines[2].split()[:3] == ["n_layers=2", "n_heads=8", "seed=0"]
    assert lines[3].startswith("  5.000 █")
    assert [line for line in lines if "preliminary" in line] == [f"  validation loss {WORDS} █▂▁"]
    assert lines[-1] == "2 waiting"


def test_before_the_first_checkpoint_that_is_said_of_models_in_training_alone():
    assert NOT_MEASURED_YET in picture(study(1), 80, 30, scores=None)
    progress = study(1)
    progress.hear(Event("training", next(iter(progress.models)), 0.0, state="compiling"))
    assert NOT_MEASURED_YET not in picture(progress, 80, 30, scores=None)


@pytest.mark.parametrize("width", [30, 60, 100, 250])
@pytest.mark.parametrize("height", [5, 12, 24, 60])
@pytest.mark.parametrize("n_models", [1, 2, 5, 40])
def test_it_fits_the_terminal(width, height, n_models):
    lines = picture(study(n_models, n_failed=3), width, height)
    assert len(lines) <= max(height, 8)
    assert max(map(len, lines)) <= width
    assert any("35 %" in line for line in lines)


def test_models_that_failed_are_named():
    names = ", ".join(f"n_layers=2 n_heads=8 seed={i}" for i in (1, 2))
    assert f"failed: {names}" in picture(study(1, n_failed=2), 80, 24)
