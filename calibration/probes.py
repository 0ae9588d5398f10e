"""Gains of probes: nothing where heads tell nothing beyond the token, something where they do, and their intervals.

A text's tokens have 30 types; a token's label is its type's parity, flipped for 40 % of tokens.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from calibration.trials import Trial
from headstream.models.heads.linear_probes import control_labels, fit_probes, standardise
from headstream.models.heads.probe_gain import Gains, commonest_labels, gains
from headstream.tasks.study.analyses.probes_config import ProbesConfig

BAR = 0.02  # of the claim that heads are linguistic
N_HEADS, N_TYPES, N_DRAWS = 8, 30, ProbesConfig().control_draws
N_DOCUMENTS, LENGTH = 26, 80
UNEQUAL = (30, 5, 60, 30, 40, 20, 50, 30, 30, 10, 45, 50, 30)  # labelled tokens of 13 documents


class Text(NamedTuple):
    """Type, label and document of each token."""

    types: Int[Tensor, "token"]
    labels: Int[Tensor, "token"]
    document: Int[Tensor, "token"]


Features = Callable[[Text, Generator], Float[Tensor, "head token feature"]]


def noise(text: Text, generator: Generator) -> Float[Tensor, "head token feature"]:
    """Heads whose output has nothing to do with the text."""
    return torch.randn(N_HEADS, len(text.types), 8, generator=generator)


def constant(text: Text, generator: Generator) -> Float[Tensor, "head token feature"]:
    """Heads that always write the same."""
    return torch.ones(N_HEADS, len(text.types), 8)


def token(text: Text, generator: Generator) -> Float[Tensor, "head token feature"]:
    """Heads that tell the token, each with some noise of its own."""
    one_hot = torch.nn.functional.one_hot(text.types, N_TYPES)
    return one_hot + 0.1 * torch.randn(N_HEADS, *one_hot.shape, generator=generator)


def half_the_labels(text: Text, generator: Generator) -> Float[Tensor, "head token feature"]:
    """Noise, but for a head that has the label of half of the tokens: right for 0.75, where the type gives 0.6."""
    features = noise(text, generator)
    known = torch.rand(len(text.types), generator=generator) < 0.5
    features[N_HEADS // 2] = torch.where(known, 2.0 * text.labels - 1, 0)[:, None]
    return features


def draw_text(generator: Generator) -> Text:
    """Documents of equal length."""
    types = torch.randint(N_TYPES, (N_DOCUMENTS * LENGTH,), generator=generator)
    flipped = torch.rand(len(types), generator=generator) < 0.4
    return Text(types, (types + flipped) % 2, torch.arange(len(types)) // LENGTH)


def measured(features_of: Features, seed: int) -> tuple[Gains, Gains]:
    """Gains of heads on the text on which the best one is chosen, and on the text on which it is tested."""
    generator = torch.Generator().manual_seed(seed)
    train, *others = (draw_text(generator) for _ in range(3))
    controls = control_labels(train.labels, 2, N_TYPES, N_DRAWS, generator)
    features = standardise(*(features_of(text, generator) for text in (train, *others)))
    labels = torch.cat([train.labels[None], controls[:, train.types]])
    probes = fit_probes(features[0], labels, 2, penalty=1e-3, max_steps=200)
    by_type, majority = commonest_labels(train.labels, train.types, 2, N_TYPES), train.labels.mode().values

    def of_text(text: Text, own: Float[Tensor, "head token feature"]) -> Gains:
        right = probes.predict(own) == torch.cat([text.labels[None], controls[:, text.types]])
        of_majority, of_type = text.labels == majority, text.labels == by_type[text.types]
        return gains(right[:, 0], right[:, 1:], of_majority, of_type, text.document)

    selected, tested = map(of_text, others, features[1:])
    return selected, tested


def above(bar: float, features_of: Features, n: int) -> int:
    """How often the interval of the best head's gain is above a bar."""
    found = (measured(features_of, seed) for seed in range(n))
    return sum(bool(tested.gain_low[selected.gain.argmax()] > bar) for selected, tested in found)


def covering(n: int) -> int:
    """How often intervals hold the gain; documents have rates of right answers of their own, and so have draws."""
    generator, hits, gain = torch.Generator().manual_seed(0), 0, 0.1
    document = torch.arange(len(UNEQUAL)).repeat_interleave(torch.tensor(UNEQUAL))
    for _ in range(n):
        rate = (0.6 + 0.1 * torch.randn(len(UNEQUAL), generator=generator)).clamp(0, 1)[document]
        of_draw = (0.6 - gain + 0.02 * torch.randn(N_DRAWS, 1, generator=generator)).clamp(0, 1)
        right = torch.rand(len(document), generator=generator) < rate
        control = torch.rand(N_DRAWS, len(document), generator=generator) < of_draw
        never = torch.zeros_like(right)
        found = gains(right[None], control[None], never, never, document)
        hits += found.gain_low.item() <= gain <= found.gain_high.item()
    return hits


TRIALS = [
    Trial(
        "coverage",
        "gain of a probe",
        f"{len(UNEQUAL)} documents of unequal length, {N_DRAWS} draws of control labels",
        covering,
        4000,
        200,
    ),
    *(
        Trial(
            "false positives",
            f"gain of the best of {N_HEADS} heads, its interval above 0",
            words,
            partial(above, 0.0, features),
            200,
            5,
        )
        for features, words in (
            (noise, "heads that write noise"),
            (constant, "heads that write always the same"),
            (token, "heads that tell the token and no more"),
        )
    ),
    Trial(
        "power",
        f"gain of the best of {N_HEADS} heads, its interval above {BAR}",
        "one tells the label of half of the tokens",
        partial(above, BAR, half_the_labels),
        200,
        5,
    ),
]
