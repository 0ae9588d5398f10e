"""Linear probes: logistic regressions that predict a token's label from the activations at one site of a model.

A linear probe of a head's output z W_O is also one of z: weights w of the former are W_O w of the latter. So heads are
probed by z, which is narrower.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.bos import n_bos
from headstream.models.transformer import Transformer

TOLERANCE = 1e-6  # nats; accuracies are then within 0.002 of those at the optimum, if thousands of tokens are tested


@dataclass(frozen=True)
class Probes:
    """Fitted probes: every problem at every site. The last weight is the bias."""

    weights: Float[Tensor, "site problem label feature"]
    converged: Bool[Tensor, "site problem"]

    def predict(self, features: Float[Tensor, "site example feature"]) -> Int[Tensor, "site problem example"]:
        """The likeliest label of each example by each probe."""
        scores = self.weights.flatten(1, 2) @ features.transpose(1, 2)
        return scores.unflatten(1, self.weights.shape[1:3]).argmax(2)


@torch.inference_mode()
def site_activations(
    model: Transformer, sequences: Int[Tensor, "batch pos"], bos: int
) -> Iterator[tuple[Float[Tensor, "head example d_value"], Float[Tensor, "example d_model"]]]:
    """Activations at every token but BOS, layer by layer: z of its heads, and the stream before it.

    The final stream comes last, without heads. Examples are the tokens of all sequences in order. One layer is held at
    a time.
    """
    first, streams = n_bos(bos), [model.embed(batch) for batch in batches(model, sequences)]
    for layer in model.layers:
        before, z = torch.cat(streams), []
        for i, x in enumerate(streams):
            traced = layer.trace(x)
            streams[i] = traced.residual_out
            z.append(traced.z[:, :, first:].transpose(0, 1).flatten(1, 2))
        yield torch.cat(z, dim=1), before[:, first:].flatten(0, 1)
    before = torch.cat(streams)[:, first:].flatten(0, 1)
    yield before.new_empty(0, len(before), model.architecture.value_width), before


def standardise(
    train: Float[Tensor, "site example feature"], *others: Float[Tensor, "site _ feature"]
) -> list[Float[Tensor, "site _ feature+1"]]:
    """Features scaled to mean 0 and standard deviation 1 on training text, with a 1 for the bias; other text alike.

    A feature that is constant in training becomes 0.
    """
    deviation, mean = torch.std_mean(train, dim=1, keepdim=True, correction=0)
    scale = torch.where(deviation > 1e-6 * mean.abs(), 1 / deviation, 0)
    one = train.new_ones(1)
    return [
        torch.cat([(features - mean) * scale, one.expand(*features.shape[:2], 1)], dim=2)
        for features in (train, *others)
    ]


def fit_probes(
    features: Float[Tensor, "site example feature"],
    labels: Int[Tensor, "problem example"],
    n_labels: int,
    *,
    penalty: float,
    max_steps: int,
) -> Probes:
    """Fit a probe for each problem at each site."""
    fitted = [_fit_site(of_site, labels, n_labels, penalty, max_steps) for of_site in features]
    return Probes(*(torch.stack(parts) for parts in zip(*fitted, strict=True)))


def _fit_site(
    features: Float[Tensor, "example feature"],
    labels: Int[Tensor, "problem example"],
    n_labels: int,
    penalty: float,
    max_steps: int,
) -> tuple[Float[Tensor, "problem label feature"], Bool[Tensor, "problem"]]:
    """Minimise mean cross-entropy plus `penalty` times the sum of squared weights; returns weights and convergence.

    The bias is penalised, too: for a label that never occurs it would have no optimum. A step goes to the minimum of a
    quadratic upper bound of the loss, which all labels and problems share, from a point ahead (Nesterov), and momentum
    restarts when it leads uphill. A probe has converged, and stops, when the bound promises less than `TOLERANCE`.
    Source: Böhning 1992 (the bound); O'Donoghue & Candès 2015 (the restarts).
    """
    n_examples, n_features = features.shape
    examples = features.T.contiguous()
    targets = torch.nn.functional.one_hot(labels, n_labels).to(features.dtype)
    target_sums = targets.transpose(1, 2) @ features / n_examples
    identity = torch.eye(n_features, dtype=features.dtype, device=features.device)
    bound = torch.linalg.cholesky(examples @ features / (2 * n_examples) + 2 * penalty * identity)

    weights = features.new_zeros(len(labels), n_labels, n_features)
    ahead, momentum = weights.clone(), features.new_ones(len(labels))
    left = torch.arange(len(labels), device=features.device)
    for _ in range(max_steps):
        at = ahead[left]
        probabilities = (at.flatten(0, 1) @ examples).unflatten(0, at.shape[:2]).softmax(1)
        gradient = probabilities @ features / n_examples - target_sums[left] + 2 * penalty * at
        step = torch.cholesky_solve(gradient.flatten(0, 1).T, bound).T.view_as(at)
        moved = at - step - weights[left]
        uphill = (gradient * moved).sum((1, 2)) > 0
        next_momentum = (1 + (1 + 4 * momentum[left] ** 2).sqrt()) / 2
        speed = torch.where(uphill, 0, (momentum[left] - 1) / next_momentum)
        momentum[left] = torch.where(uphill, 1, next_momentum)
        weights[left] = at - step
        ahead[left] = weights[left] + speed[:, None, None] * moved
        left = left[(gradient * step).sum((1, 2)) / 2 >= TOLERANCE]
        if not len(left):
            break
    converged = torch.ones(len(labels), dtype=torch.bool, device=features.device)
    converged[left] = False
    return weights, converged


def control_labels(
    labels: Int[Tensor, "example"], n_labels: int, d_vocab: int, n_draws: int, generator: torch.Generator
) -> Int[Tensor, "draw d_vocab"]:
    """Random labels for each token of the vocabulary, with the frequencies of `labels`.

    Source: Hewitt & Liang 2019, control tasks.
    """
    frequency = torch.bincount(labels, minlength=n_labels).double()
    drawn = torch.multinomial(frequency, n_draws * d_vocab, replacement=True, generator=generator)
    return drawn.view(n_draws, d_vocab)
