"""Phase changes: none in what is flat or rises gradually, measured with real noise, and those that there are."""

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
    proportional,
    steps_of,
    straight,
)

TOO_FEW, ENOUGH = (6,), (12, 16)  # checkpoints to tell abrupt rises from gradual ones
MIDDLES = (150, 420, 900)  # steps of 1220 at which logistic rises are steepest: early, in the middle, late

Curve = Callable[[Score, Steps, int], Levels]  # the last is the number of the try


def flat(score: Score, steps: Steps, number: int) -> Levels:
    """No rise."""
    return straight(steps, 0.0)


def steady_in_log_tokens(score: Score, steps: Steps, number: int) -> Levels:
    """A rise as large as a real one, straight over log tokens."""
    return straight(steps, score.rise)


def steady_in_tokens(score: Score, steps: Steps, number: int) -> Levels:
    """A rise as large as a real one, in proportion to tokens."""
    return proportional(steps, score.rise)


def within(factor: float, score: Score, steps: Steps, number: int) -> Levels:
    """A rise as large as a real one, of which 80 % falls within a factor of tokens."""
    return logistic(steps, score.rise, MIDDLES[number % len(MIDDLES)], factor)


def called(kinds: Sequence[str], curve: Curve, score: Score, n_checkpoints: int, n: int) -> int:
    """How many such trajectories the view phase_changes calls one of these."""
    rng, steps = np.random.default_rng(0), steps_of(n_checkpoints)
    measured = [score.measured(curve(score, steps, number), 0.0, rng) for number in range(n)]
    return sum(kind in kinds for kind in kinds_of(score, steps, measured))


FLAT = (flat, "flat, measured with the noise of repeats")
IN_LOG_TOKENS = (steady_in_log_tokens, "a straight line over log tokens, with that noise")
IN_TOKENS = (steady_in_tokens, "a rise in proportion to tokens, with that noise")
SLOW = (partial(within, 10.0), "logistic rises within a factor of 10 of tokens, with that noise")
FAST = (partial(within, 3.0), "logistic rises within a factor of 3 of tokens, with that noise")

CASES: list[tuple[Kind, str, Sequence[str], tuple[Curve, str], Sequence[int]]] = [
    ("false positives", "rise", ("gradual", "abrupt", "unresolved"), FLAT, TOO_FEW + ENOUGH),
    *(
        ("false positives", "phase change", ("abrupt",), tried_on, TOO_FEW + ENOUGH)
        for tried_on in (FLAT, IN_LOG_TOKENS, IN_TOKENS, SLOW)
    ),
    ("power", "phase change", ("abrupt",), FAST, ENOUGH),
    ("power", "too few checkpoints to tell a phase change", ("unresolved",), FAST, TOO_FEW),
    ("power", "gradual rise", ("gradual",), IN_LOG_TOKENS, ENOUGH),
    ("power", "gradual rise", ("gradual",), IN_TOKENS, ENOUGH),
]

TRIALS = [
    Trial(
        kind,
        f"{what} of {score.name}",
        f"{words}, {n_checkpoints} checkpoints",
        partial(called, kinds, curve, score, n_checkpoints),
        6_000,
        200,
    )
    for kind, what, kinds, (curve, words), checkpoints in CASES
    for score in (PREFIX_MATCHING, REPEAT_GAIN)
    for n_checkpoints in checkpoints
]
