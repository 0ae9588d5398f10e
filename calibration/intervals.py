"""Intervals, at the numbers of seeds, documents and sequences at which they are used."""

import math
from functools import partial

import duckdb
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from calibration.trials import Trial
from headstream.models.clustered_errors import clustered_mean
from headstream.models.losses import repeat_losses
from headstream.models.repeats import random_period_repeats
from headstream.tasks.results.views import create_tables_and_views

SEEDS = (3, 5)
TEXTS = ((8, 0.3), (16, 0.3), (64, 0.0), (64, 0.3), (64, 1.0), (256, 0.3))  # windows, shared part of their variance

# Tokens of the 52 validation documents of a corpus, the Python standard library's source.
# fmt: off
DOCUMENTS = (
    5204, 112489, 12705, 9361, 2910, 160, 41458, 5092, 2491, 14303, 26732, 19166, 4507, 8212, 11188, 3253, 18104, 3452,
    11035, 613, 4938, 58853, 3205, 3345, 3788, 53, 22399, 2482, 2086, 1146, 6937, 1117, 6974, 19953, 20057, 534, 6635,
    7561, 1528, 5026, 799, 389, 14251, 986, 1053, 8192, 1265, 1121, 1954, 500, 22949, 2924,
)
# fmt: on


def documents_of(n_windows: int) -> Int[Tensor, "window"]:
    """The documents of windows of 128 tokens, every other of all that there are, thinned out evenly."""
    every = np.repeat(np.arange(len(DOCUMENTS)), np.array(DOCUMENTS) // 128)[::2]
    return torch.from_numpy(every[np.arange(n_windows) * len(every) // n_windows])


def draws_of_windows(document: Int[Tensor, "window"], alike: float, n: int) -> Float[Tensor, "draw window"]:
    """Windows with mean 0; those of a document share a part `alike` of their variance of 1."""
    generator = torch.Generator().manual_seed(0)
    shared = torch.randn(n, int(document.max()) + 1, generator=generator, dtype=torch.float64)[:, document]
    own = torch.randn(n, len(document), generator=generator, dtype=torch.float64)
    return math.sqrt(alike) * shared + math.sqrt(1 - alike) * own


def means_over_documents(n_windows: int, alike: float, n: int) -> int:
    """How often `clustered_mean` covers."""
    document = documents_of(n_windows)
    low, high = clustered_mean(draws_of_windows(document, alike, n), document).interval()
    return int(((low < 0) & (high > 0)).sum())


def means_over_seeds(n_seeds: int, n: int) -> int:
    """How often mean +- ci95 covers, the macro of data/schema.sql."""
    values = np.random.default_rng(0).normal(size=(n, n_seeds))
    draws = {"draw": np.repeat(np.arange(n), n_seeds), "value": values.ravel()}
    with duckdb.connect() as connection:
        create_tables_and_views(connection)
        connection.register("draws", draws)
        each = "SELECT abs(avg(value)) < ci95(value) AS covers FROM draws GROUP BY draw"
        return connection.execute(f"SELECT count(*) FILTER (covers) FROM ({each})").fetchall()[0][0]


def gains_over_repeats(n_sequences: int, n: int) -> int:
    """How often repeat_gain +- 1.96 standard errors covers: sequences differ, and in how much they gain, too."""
    generator = torch.Generator().manual_seed(0)
    hits = 0
    for _ in range(n):
        repeats = random_period_repeats(torch.arange(1, 60), 0, 64, n_sequences, generator)
        assert repeats is not None  # the vocabulary is large enough
        occurrence = repeats.occurrence[:, 1:]
        hard, gain = torch.randn(2, n_sequences, 1, generator=generator, dtype=torch.float64)
        noise = torch.randn(occurrence.shape, generator=generator, dtype=torch.float64)
        found = repeat_losses(5 + hard - (1 + gain) * (occurrence > 1) + noise, occurrence)
        hits += abs(float(found["repeat_gain_nats"]) - 1) < 1.96 * float(found["repeat_gain_sem_nats"])
    return hits


TRIALS = [
    *(
        Trial("coverage", "mean over seeds, Student's t", f"{n} seeds", partial(means_over_seeds, n), 20_000, 1000)
        for n in SEEDS
    ),
    *(
        Trial(
            "coverage",
            "mean over validation text, clustered by document",
            f"{n} windows of documents as long as real ones, with {100 * alike:.0f} % of the variance in common",
            partial(means_over_documents, n, alike),
            10_000,
            1000,
        )
        for n, alike in TEXTS
    ),
    Trial(
        "coverage",
        "repeat_gain ± 1.96 standard errors",
        "64 sequences of repeats of random period",
        partial(gains_over_repeats, 64),
        2000,
        200,
    ),
]
