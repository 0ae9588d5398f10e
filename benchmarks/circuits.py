"""Weight-only circuits against the plain way: whole matrices for composition, one product a head for eigenvalues.

python -m benchmarks.circuits
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import islice

import torch
from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.models.circuits.composition import composition, head_pairs
from headstream.models.circuits.eigenvalues import copying_eigenvalues
from headstream.models.circuits.head_weights import CircuitWeights, circuit_weights
from headstream.models.transformer import Transformer

SHAPES = ((2, 8, 256), (4, 12, 768))  # layers, heads, d_model
VOCABULARY = 50_257
ROUNDS = 5
PLAIN_PAIRS = 8  # whole matrices are timed on so many pairs, and their time scaled to all


def initial_weights(n_layers: int, n_heads: int, d_model: int, d_vocab: int) -> CircuitWeights:
    """Of a model before training."""
    model = Transformer(Architecture(n_layers=n_layers, n_heads=n_heads, d_model=d_model), d_vocab)
    return circuit_weights(model.initialize(torch.Generator().manual_seed(0)))


def plain_composition(weights: CircuitWeights, n_pairs: int) -> Tensor:
    """Scores of the first pairs, from [d_model, d_model] matrices."""
    scores = []
    for writer_layer, writer, layer, reader in islice(head_pairs(weights.heads_per_layer).tolist(), n_pairs):
        first, second = weights.layers[writer_layer], weights.layers[layer]
        left, qk = first.W_V[writer] @ first.W_O[writer], second.W_Q[reader] @ second.W_K[reader].T
        rights = (qk, qk.T, second.W_V[reader] @ second.W_O[reader])
        scores.append(torch.stack([(left @ right).norm() / (left.norm() * right.norm()) for right in rights]))
    return torch.stack(scores).double()


def plain_copying_eigenvalues(weights: CircuitWeights) -> list[Tensor]:
    """Eigenvalues of (W_O W_U)(W_E W_V), a product over the vocabulary for every head."""
    return [torch.linalg.eigvals((own.W_O @ weights.W_U) @ (weights.W_E @ own.W_V)) for own in weights.layers]


def in_turns(*runs: Callable[[], object]) -> list[float]:
    """Median seconds of each, measured in turns."""
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(ROUNDS + 1):
        for own, run in zip(seconds, runs, strict=True):
            start = time.perf_counter()
            run()
            own.append(time.perf_counter() - start)
    return [statistics.median(own[1:]) for own in seconds]


def main() -> None:
    """Print the ratios."""
    torch.set_num_threads(1)  # as in the stage: models are measured side by side
    for shape in SHAPES:
        name = "x".join(map(str, shape))
        weights = initial_weights(*shape, d_vocab=2)
        n_pairs = len(head_pairs(weights.heads_per_layer))
        timed = min(PLAIN_PAIRS, n_pairs)
        found = composition(weights).score[:timed]
        torch.testing.assert_close(found, plain_composition(weights, timed), atol=1e-5, rtol=0)
        ours, plain = in_turns(partial(composition, weights), partial(plain_composition, weights, timed))
        plain *= n_pairs / timed
        print(f"composition {name}: {1e3 * ours:.1f} ms, whole matrices {1e3 * plain:.0f} ms: {plain / ours:.0f} times")

        weights = initial_weights(*shape, d_vocab=VOCABULARY)
        ours, plain = in_turns(partial(copying_eigenvalues, weights), partial(plain_copying_eigenvalues, weights))
        print(
            f"OV eigenvalues {name}, vocabulary {VOCABULARY:,}: {1e3 * ours:.0f} ms,"
            f" head by head {1e3 * plain:.0f} ms: {plain / ours:.1f} times"
        )


if __name__ == "__main__":
    main()
