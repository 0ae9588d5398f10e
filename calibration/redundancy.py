"""Redundant pairs of heads: exact copies are; none before training, in series or where the excess is too small."""

from functools import partial
from itertools import combinations
from random import Random
from typing import NamedTuple

import torch

from calibration.measured import Stages, Trained, rows_about, vocabulary
from calibration.trials import Trial
from headstream.models.architecture import Architecture
from headstream.models.heads.head import heads_of
from headstream.models.heads.paired_ablation import EXCESS_SHARE, ablation_losses, pair_effects
from headstream.models.heads.references import mean_z
from headstream.models.nodes import Head
from headstream.models.transformer import Transformer
from headstream.tasks.study.analyses.redundancy_config import RedundancyConfig
from tests.planted import BOS, attention_of, blank_model, initial_like, plant_fixed_offset

SHAPES = ((2, 4), (2, 8), (3, 4))  # layers, heads a layer
STAGES: Stages = {"redundancy": RedundancyConfig(windows=32, reference_windows=16)}
OFFSET, N_CTX = 2, 32
N_DOCUMENTS, WINDOWS_EACH = 24, 2


def untrained(shape: tuple[int, int], n: int) -> int:
    """How many models before training have a redundant pair."""
    n_layers, n_heads = shape
    like = Transformer(Architecture(n_layers=n_layers, n_heads=n_heads, d_model=32, n_ctx=N_CTX), vocabulary())
    models = (Trained(None, initial_like(like, seed)) for seed in range(n))
    query = "SELECT count(DISTINCT model_id) FROM head_similarity WHERE is_redundant"
    ((found,),) = rows_about(models, STAGES, query)
    return found


class Losses(NamedTuple):
    """Rises of the loss: without each of two heads, and how much further without both than the sum of those."""

    first: float
    second: float
    excess: float


MEAN_LOSS = 2.5
JUST_TOO_LITTLE = Losses(0.005, 0.005, EXCESS_SHARE * MEAN_LOSS)
# One head acts through the other alone: without the one that it harms, it makes no difference.
IN_SERIES = Losses(0.005, -0.03, 0.03)
BOTH_HARMFUL = Losses(-0.02, -0.02, 0.02)  # it is enough to lose either


def simulated(rises: Losses, n_heads: int, n: int) -> int:
    """How often any pair of heads counts as redundant whose losses are these on average.

    Heads take turns in being first and second.
    """
    generator, hits = torch.Generator().manual_seed(0), 0
    pairs = [pair for pair in combinations(range(n_heads), 2) if sum(pair) % 2]
    documents = torch.arange(N_DOCUMENTS).repeat_interleave(WINDOWS_EACH)

    def noise(n_rows: int, sd: float) -> torch.Tensor:
        """Of windows, half of its variance that of their document."""
        own, shared = (
            torch.randn(n_rows, size, generator=generator).double() for size in (len(documents), N_DOCUMENTS)
        )
        return sd * (own + shared[:, documents]) / 2**0.5

    means = torch.tensor([rises[head % 2] for head in range(n_heads)]).double()
    for _ in range(n):
        intact = MEAN_LOSS + noise(1, 0.3)[0]
        alone = intact + means[:, None] + noise(n_heads, 0.01)
        first, second = torch.tensor(pairs).T
        excess = rises.excess / MEAN_LOSS * intact
        both = alone[first] + alone[second] - intact + excess + noise(len(pairs), 0.01)
        hits += any(pair_effects(intact, alone, both, pairs, documents).redundant)
    return hits


def copies(seed: int) -> tuple[Transformer, tuple[Head, Head]]:
    """Two layers of random heads that write little, and two copies of a head that predicts by the period."""
    model, random = blank_model((4, 4), vocabulary(), N_CTX), Random(seed)
    for own, other in zip(model.layers, initial_like(model, seed).layers, strict=True):
        own.attention.load_state_dict(other.attention.state_dict())
        own.attention.W_O.mul_(0.1)
    first, second = sorted(random.sample(heads_of(model), 2))
    for layer, head in (first, second):
        attention = attention_of(model, layer)
        for weight in (attention.W_Q, attention.W_K, attention.W_V, attention.W_O):
            weight[head] = 0
        plant_fixed_offset(model, layer, head, OFFSET)
    return model, (first, second)


def copies_found(n: int) -> int:
    """In how many models the copies are the one redundant pair."""
    return sum(_redundant(*copies(seed), seed) for seed in range(n))


def _redundant(model: Transformer, planted: tuple[Head, Head], seed: int) -> bool:
    generator, heads = torch.Generator().manual_seed(seed), heads_of(model)
    documents = torch.arange(N_DOCUMENTS).repeat_interleave(WINDOWS_EACH)

    def text(n_windows: int) -> torch.Tensor:
        period = torch.randint(1, model.d_vocab, (n_windows, OFFSET + 1), generator=generator)
        tokens = period.repeat(1, N_CTX // (OFFSET + 1) + 1)[:, :N_CTX]
        return torch.cat([torch.full((n_windows, 1), BOS), tokens], dim=1)

    pairs = list(combinations(range(len(heads)), 2))
    losses = ablation_losses(model, text(len(documents)), mean_z(model, text(16)), heads, pairs)
    found = [pair for pair, own in zip(pairs, pair_effects(*losses, pairs, documents).redundant, strict=True) if own]
    return found == [(heads.index(planted[0]), heads.index(planted[1]))]


TRIALS = [
    *(
        Trial(
            "false positives",
            "redundant pair, any in a model",
            "{} layers of {} heads before training".format(*shape),
            partial(untrained, shape),
            100,
            1,
        )
        for shape in SHAPES
    ),
    *(
        Trial("false positives", "redundant pair, any of 16", tried_on, partial(simulated, rises, 8), n, n // 100)
        for tried_on, rises, n in (
            (
                f"losses that exceed the sum by exactly {100 * EXCESS_SHARE:g} %, noise shared within documents",
                JUST_TOO_LITTLE,
                20_000,
            ),
            ("pairs in series, of which one harms and acts through the other alone", IN_SERIES, 6_000),
            ("pairs in series, both harmful: without one the other makes no difference", BOTH_HARMFUL, 6_000),
        )
    ),
    Trial(
        "power",
        "redundant pair, the one there is",
        "exact copies among 8 heads, in one layer or two",
        copies_found,
        100,
        5,
    ),
]
