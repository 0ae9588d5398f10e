"""Phase changes: none in flat and straight trajectories with the noise of real ones, and those that are there."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from calibration.trials import Kind, Trial
from tests.simulated_trajectories import (
    PREFIX_MATCHING,
    REPEAT_GAIN,
    Levels,
    Score,
    Steps,
    kinds_of,
    logistic,
    steps_of,
    straight,
)

CHECKPOINTS = (6, 16)
MIDDLES = (150, 420, 900)  # steps of 1220 at which rises are steepest
WITHIN = 3.0  # 80 % of a rise falls within this factor of tokens

Curve = Callable[[Score, Steps, int], Levels]  # the last is the number of the try


def flat(score: Score, steps: Steps, number: int) -> Levels:
    """No rise."""
    return straight(steps, 0.0)


def steady(score: Score, steps: Steps, number: int) -> Levels:
    """A rise as large as a real one, straight over log tokens."""
    return straight(steps, score.rise)


def abrupt(score: Score, steps: Steps, number: int) -> Levels:
    """A rise as large as a real one, early, in the middle or late."""
    return logistic(steps, score.rise, MIDDLES[number % len(MIDDLES)], WITHIN)


def called(kinds: Sequence[str], curve: Curve, score: Score, n_checkpoints: int, n: int) -> int:
    """How many such trajectories the view phase_changes calls one of these."""
    rng, steps = np.random.default_rng(0), steps_of(n_checkpoints)
    measured = [score.measured(curve(score, steps, number), 0.0, rng) for number in range(n)]
    return sum(kind in kinds for kind in kinds_of(score, steps, measured))


CASES: list[tuple[Kind, str, Sequence[str], Curve, str]] = [
    ("false positives", "rise", ("gradual", "abrupt"), flat, "flat, measured with the noise of repeats"),
    ("false positives", "phase change", ("abrupt",), flat, "flat, measured with the noise of repeats"),
    ("false positives", "phase change", ("abrupt",), steady, "a straight line over log tokens, with that noise"),
    ("power", "phase change", ("abrupt",), abrupt, "logistic rises within a factor of 3 of tokens, with that noise"),
]

TRIALS = [
    Trial(
        kind,
        f"{what} of {score.name}",
        f"{words}, {n_checkpoints} checkpoints",
        partial(called, kinds, curve, score, n_checkpoints),
        20_000,
        200,
    )
    for kind, what, kinds, curve, words in CASES
    for score in (PREFIX_MATCHING, REPEAT_GAIN)
    for n_checkpoints in CHECKPOINTS
]
