"""Trajectories of scores over a training run as they would be measured, of which is known what they are."""

from dataclasses import dataclass
from math import log

import duckdb
import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from numpy.typing import NDArray

from headstream.tasks.results.views import create_tables_and_views
from headstream.tasks.training.training_steps import kept_steps

N_STEPS, TOKENS_PER_STEP = 1220, 4096
Steps = Int[NDArray[np.int64], "checkpoint"]
Levels = Float[NDArray[np.float64], "checkpoint"]


@dataclass(frozen=True)
class Score:
    """A score that phase changes are looked for in, and how it is measured where it is high."""

    name: str
    rise: float  # as large as in a model that learns it
    n_sequences: int
    sequence_sd: float  # of the score of a single sequence

    def measured(
        self, levels: Levels, shared: float, rng: np.random.Generator, skewed: bool = False
    ) -> tuple[Levels, Levels]:
        """What sequences that are the same ones at every checkpoint give, and its standard errors.

        `shared` is the part of a sequence's variance that is the same at every checkpoint; errors are normal, or
        exponential.
        """
        own = rng.exponential if skewed else rng.normal
        common, passing = own(size=(self.n_sequences, 1)), own(size=(self.n_sequences, len(levels)))
        errors = shared**0.5 * common + (1 - shared) ** 0.5 * passing - (skewed * (shared**0.5 + (1 - shared) ** 0.5))
        values = levels + self.sequence_sd * errors
        return values.mean(0), values.std(0, ddof=1) / self.n_sequences**0.5


PREFIX_MATCHING = Score("prefix_matching", 0.43, 10, 0.06)
REPEAT_GAIN = Score("repeat_gain_nats", 2.3, 64, 0.8)


def steps_of(n_checkpoints: int) -> Steps:
    """The checkpoints of a run, the initialisation among them."""
    return np.array(kept_steps(N_STEPS, n_checkpoints))


def straight(steps: Steps, rise: float) -> Levels:
    """A straight line over log tokens from the first trained checkpoint on; a rise of 0 is flat."""
    x = np.log(np.maximum(steps, steps[1]))
    return rise * (x - x[0]) / (x[-1] - x[0])


def proportional(steps: Steps, rise: float) -> Levels:
    """A rise in proportion to tokens, from the first to the last."""
    return rise * steps / steps[-1]


def logistic(steps: Steps, rise: float, middle: float, factor: float) -> Levels:
    """A rise of which 80 % falls within a factor of tokens around a step."""
    x = np.log(np.maximum(steps, 1))
    return rise / (1 + np.exp(-(x - log(middle)) * 2 * log(9) / log(factor)))


def kinds_of(score: Score, steps: Steps, trajectories: list[tuple[Levels, Levels]]) -> list[str]:
    """What the view phase_changes calls each of the measured trajectories."""
    names = [f"{i:06}" for i in range(len(trajectories))]
    value, sem = (np.concatenate(part) for part in zip(*trajectories, strict=True))
    model_id, step = np.repeat(names, len(steps)), np.tile(steps, len(names))
    measured = pd.DataFrame({"model_id": model_id, "step": step, "tokens": step * TOKENS_PER_STEP})
    measured["value"], measured["sem"] = value, sem
    with duckdb.connect() as connection:
        create_tables_and_views(connection)
        connection.execute("INSERT INTO models BY NAME SELECT DISTINCT model_id FROM measured")
        if score is REPEAT_GAIN:
            scores = "value AS repeat_gain_nats, sem AS repeat_gain_sem_nats"
            connection.execute(f"INSERT INTO evaluations BY NAME SELECT model_id, step, tokens, {scores} FROM measured")
        else:
            connection.execute("INSERT INTO evaluations BY NAME SELECT model_id, step, tokens FROM measured")
            scores = "1 AS layer, 0 AS head, value AS prefix_matching, sem AS prefix_matching_sem"
            connection.execute(f"INSERT INTO heads BY NAME SELECT model_id, step, {scores} FROM measured")
        found = connection.execute(
            "SELECT kind FROM phase_changes WHERE score = ? ORDER BY model_id", [score.name]
        ).fetchall()
    return [kind for (kind,) in found]
