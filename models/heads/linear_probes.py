"""Linear probes: logistic regressions that tell a token's label from what is at one site of a model.

A linear probe of what a head writes, z W_O, is one of z, too: weights w of the one are W_O w of the other. So heads are
probed by z, which is narrower.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.batching import batches
from models.transformer import Transformer

TOLERANCE = 1e-6  # nats; accuracies are then within 0.001 of those at the optimum


@dataclass(frozen=True)
class Probes:
    """Fitted probes: every problem at every site. The last weight is the bias."""

    weights: Float[Tensor, "site problem label feature"]
    converged: Bool[Tensor, "site problem"]

    def predict(self, features: Float[Tensor, "site example feature"]) -> Int[Tensor, "site problem example"]:
        """The label that each probe finds likeliest for each example."""
        scores = self.weights.flatten(1, 2) @ features.transpose(1, 2)
        return scores.unflatten(1, self.weights.shape[1:3]).argmax(2)


@torch.inference_mode()
def site_activations(
    model: Transformer, sequences: Int[Tensor, "batch pos"]
) -> tuple[Float[Tensor, "head example d_value"], Float[Tensor, "stream example d_model"]]:
    """Activations at every token but BOS: z of each head, and the stream before each layer and at the end.

    Examples are the tokens of all sequences, one sequence after the other.
    """
    z, streams = [], []
    for batch in batches(model, sequences):
        trace = model.trace(batch)
        none = trace.embedding.new_empty(len(batch), 0, batch.shape[1], model.architecture.value_width)
        heads = torch.cat([none, *(layer.z for layer in trace.layers)], dim=1)
        z.append(heads[:, :, 1:].transpose(0, 1).flatten(1, 2))
        stream = torch.stack([trace.embedding, *(layer.residual_out for layer in trace.layers)])
        streams.append(stream[:, :, 1:].flatten(1, 2))
    return torch.cat(z, dim=1), torch.cat(streams, dim=1)


def standardise(
    train: Float[Tensor, "site example feature"], test: Float[Tensor, "site test_example feature"]
) -> tuple[Float[Tensor, "site example feature+1"], Float[Tensor, "site test_example feature+1"]]:
    """Features with mean 0 and standard deviation 1 in training, and a 1 for the bias.

    A feature that never changes in training is 0.
    """
    deviation, mean = torch.std_mean(train, dim=1, keepdim=True, correction=0)
    scale = torch.where(deviation > 1e-6 * mean.abs(), 1 / deviation, 0)
    one = train.new_ones(1)
    train, test = (
        torch.cat([(features - mean) * scale, one.expand(*features.shape[:2], 1)], dim=2) for features in (train, test)
    )
    return train, test


def fit_probes(
    features: Float[Tensor, "site example feature"],
    labels: Int[Tensor, "problem example"],
    n_labels: int,
    *,
    penalty: float,
    max_steps: int,
) -> Probes:
    """Fit probes: the weights that minimise mean cross-entropy plus `penalty` times the sum of their squares.

    That includes the bias: of a label that never comes it would have no optimum. A step goes to the minimum of a
    quadratic upper bound of the loss, which all labels and problems of a site share, from a point ahead (Nesterov), and
    momentum is lost where it leads uphill. A probe has converged when the bound promises less than `TOLERANCE`.
    Source: Böhning 1992 (the bound); O'Donoghue & Candès 2015 (the restarts).
    """
    n_sites, n_examples, n_features = features.shape
    shape = (n_sites, len(labels), n_labels, n_features)
    examples = features.transpose(1, 2).contiguous()
    targets = torch.nn.functional.one_hot(labels, n_labels).to(features.dtype).transpose(1, 2).flatten(0, 1)
    target_sums = targets @ features / n_examples
    identity = torch.eye(n_features, dtype=features.dtype, device=features.device)
    bound = torch.linalg.cholesky(examples @ features / (2 * n_examples) + 2 * penalty * identity)

    weights = ahead = features.new_zeros(n_sites, len(labels) * n_labels, n_features)
    momentum = features.new_ones(n_sites, len(labels))
    for _ in range(max_steps):
        probabilities = (ahead @ examples).unflatten(1, shape[1:3]).softmax(2).flatten(1, 2)
        gradient = probabilities @ features / n_examples - target_sums + 2 * penalty * ahead
        step = torch.cholesky_solve(gradient.transpose(1, 2), bound).transpose(1, 2)
        converged = (gradient * step).view(shape).sum((2, 3)) / 2 < TOLERANCE
        new = ahead - step
        uphill = (gradient * (new - weights)).view(shape).sum((2, 3)) > 0
        next_momentum = (1 + (1 + 4 * momentum**2).sqrt()) / 2
        speed = torch.where(uphill, 0, (momentum - 1) / next_momentum)
        momentum = torch.where(uphill, 1, next_momentum)
        ahead = new + (speed[:, :, None, None] * (new - weights).view(shape)).flatten(1, 2)
        weights = new
        if converged.all():
            break
    return Probes(weights.view(shape), converged)


def control_labels(
    labels: Int[Tensor, "example"], n_labels: int, d_vocab: int, generator: torch.Generator
) -> Int[Tensor, "d_vocab"]:
    """A random label for each token of the vocabulary, as likely as it is among `labels`.

    Source: Hewitt & Liang 2019, control tasks.
    """
    frequency = torch.bincount(labels, minlength=n_labels).double()
    return torch.multinomial(frequency, d_vocab, replacement=True, generator=generator)
