"""Pairs of heads that compose: none in models whose heads were turned at random, those planted in others."""

from functools import partial

import torch

from calibration.trials import Trial
from headstream.models.architecture import Architecture
from headstream.models.circuits.composition import composition
from headstream.models.circuits.head_weights import CircuitWeights, circuit_weights
from headstream.models.transformer import Transformer
from headstream.tasks.measuring.weight_circuits import composition_columns
from headstream.tasks.study.analyses.weight_circuits_config import WeightCircuitsConfig
from tests.planted import composed_model, initial_like

CONFIG = WeightCircuitsConfig(rotations=2)
SHAPES = ((2, 4), (2, 8), (3, 4))  # layers, heads a layer
D_MODEL, D_VOCAB = 64, 29


def random_model(shape: tuple[int, int], seed: int) -> Transformer:
    """A model before training."""
    n_layers, n_heads = shape
    model = Transformer(Architecture(n_layers=n_layers, n_heads=n_heads, d_model=D_MODEL), D_VOCAB)
    return model.initialize(torch.Generator().manual_seed(seed)).requires_grad_(False)


def composed(model: Transformer, initial: Transformer) -> list[bool]:
    """Which of a model's pairs and kinds are significant, as the stage weight-circuits says."""
    weights: list[CircuitWeights] = [circuit_weights(own) for own in (model, initial)]
    columns = composition_columns(CONFIG, weights[0], *map(composition, weights))
    return columns["significant"].tolist()


def others(shape: tuple[int, int], n: int) -> int:
    """Models with weights that have nothing to do with those that they began with."""
    return sum(any(composed(random_model(shape, 2 * i), random_model(shape, 2 * i + 1))) for i in range(n))


def noisy(shape: tuple[int, int], n: int) -> int:
    """Models to whose weights as much noise came as there was at first."""
    hits = 0
    for i in range(n):
        model, initial, noise = (random_model(shape, seed) for seed in (2 * i, 2 * i, 2 * i + 1))
        for parameter, other in zip(model.parameters(), noise.parameters(), strict=True):
            parameter.add_(other)
        hits += any(composed(model, initial))
    return hits


def turned(n: int) -> int:
    """Models in which pairs composed by Q, K or V until the output of each head was turned at random."""
    hits = 0
    for i in range(n):
        model = composed_model("QKV"[i % 3])
        for layer in model.layers:
            for W_O in layer.attention.W_O:
                frame = torch.randn(W_O.shape[1], W_O.shape[1], generator=torch.Generator().manual_seed(i))
                W_O.copy_(W_O @ torch.linalg.qr(frame).Q)
        hits += any(composed(model, initial_like(model, i)))
    return hits


def shape_words(shape: tuple[int, int]) -> str:
    """A shape as people write it."""
    return "{} layers of {} heads".format(*shape)


TRIALS = [
    *(
        Trial(
            "false positives",
            "composed pair, any in a model",
            f"{shape_words(shape)}, {on}",
            partial(count, shape),
            1000,
            30,
            CONFIG.level,
        )
        for count, on in (
            (others, "random weights, begun with others"),
            (noisy, "random weights and as much noise on them"),
        )
        for shape in SHAPES
    ),
    Trial(
        "false positives",
        "composed pair, any in a model",
        "2 layers of 3 heads, planted pairs of which each head's output was turned at random",
        turned,
        1000,
        30,
        CONFIG.level,
    ),
]
