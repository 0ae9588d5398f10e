"""The gain of a probe: accuracy that neither the commonest label, nor the token, nor the probe itself explains."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from scipy.special import stdtrit
from torch import Tensor

from headstream.models.clustered_errors import clustered_mean


class Gains(NamedTuple):
    """Fractions of examples that probes label correctly, and differences from baselines.

    Standard errors and intervals are over documents and draws of control labels; NaN if they can't be estimated.
    """

    accuracy: Float[Tensor, "site"]
    majority_accuracy: Float[Tensor, "site"]
    type_accuracy: Float[Tensor, "site"]
    control_accuracy: Float[Tensor, "site"]
    control_sem: Float[Tensor, "site"]
    selectivity: Float[Tensor, "site"]
    selectivity_sem: Float[Tensor, "site"]
    gain: Float[Tensor, "site"]
    gain_sem: Float[Tensor, "site"]
    gain_low: Float[Tensor, "site"]
    gain_high: Float[Tensor, "site"]


def commonest_labels(
    labels: Int[Tensor, "example"], types: Int[Tensor, "example"], n_labels: int, d_vocab: int
) -> Int[Tensor, "d_vocab"]:
    """The commonest label of each token of the vocabulary.

    For ties, and for tokens that never occur, it is the label that is commonest overall.
    """
    counts = torch.zeros(d_vocab * n_labels).index_add_(0, types * n_labels + labels, torch.ones(len(labels)))
    counts = counts.double().view(d_vocab, n_labels)
    return (counts + counts.sum(0) / (len(labels) + 1)).argmax(1)


def gains(
    right: Bool[Tensor, "site example"],
    control_right: Bool[Tensor, "site draw example"],
    majority_right: Bool[Tensor, "example"],
    type_right: Bool[Tensor, "example"],
    document: Int[Tensor, "example"],
) -> Gains:
    """Gains of probes: accuracy minus the highest of the majority, type and control baselines.

    The variance of selectivity is the variance over documents, given the draws, plus that of the mean over draws, given
    the text. The standard error of the gain is that of the smallest of the three differences. Its interval extends from
    the lowest lower end to the lowest upper end of theirs, so that it lies above a threshold only if all three do (an
    intersection-union test, which needs no correction).
    Source: Hewitt & Liang 2019 (selectivity); Berger 1982 (the test).
    """
    accuracy, controls = right.double(), control_right.double()
    n_draws = controls.shape[1]
    baselines = torch.stack([controls.mean(1), *(of.double().expand_as(right) for of in (majority_right, type_right))])
    beyond = clustered_mean(accuracy - baselines, document)
    control_sem = controls.mean(2).std(1) / math.sqrt(n_draws)
    draws_sem = torch.stack([control_sem, torch.zeros_like(control_sem), torch.zeros_like(control_sem)])
    sem = (beyond.sem**2 + draws_sem**2).sqrt()
    # Degrees of freedom of a sum of two variances, by Welch & Satterthwaite.
    degrees = sem**4 / (beyond.sem**4 / beyond.degrees_of_freedom + draws_sem**4 / (n_draws - 1))
    half = torch.where(sem > 0, torch.from_numpy(stdtrit(degrees.numpy(), 0.975)) * sem, sem)
    least = beyond.mean.argmin(0, keepdim=True)
    control_accuracy, majority_accuracy, type_accuracy = baselines.mean(2)
    return Gains(
        accuracy=accuracy.mean(1),
        majority_accuracy=majority_accuracy,
        type_accuracy=type_accuracy,
        control_accuracy=control_accuracy,
        control_sem=control_sem,
        selectivity=beyond.mean[0],
        selectivity_sem=sem[0],
        gain=beyond.mean.gather(0, least)[0],
        gain_sem=sem.gather(0, least)[0],
        gain_low=(beyond.mean - half).amin(0),
        gain_high=(beyond.mean + half).amin(0),
    )
