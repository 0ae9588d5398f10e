"""Quantities of each head on its own, from the weights: one number each, NaN where a head has none."""

from dataclasses import dataclass

import torch
from jaxtyping import Int, Num
from torch import Tensor

from headstream.models.circuits.copying import copying_evaluator, diagonal_accuracy, diagonal_ranks
from headstream.models.circuits.eigenvalues import copying_eigenvalues, eigenvalue_score, matching_eigenvalues
from headstream.models.circuits.full_circuits import full_ov, position_spread, score_spread, token_moments
from headstream.models.circuits.head_weights import CircuitWeights
from headstream.models.circuits.persistence import persistence
from headstream.models.circuits.subspaces import (
    effective_rank,
    numerical_rank,
    ov_singular_values,
    qk_singular_values,
    reading_overlaps,
)
from headstream.models.transformer import Transformer

Scores = dict[str, Num[Tensor, "_"]]  # a number a head


@dataclass(frozen=True)
class CircuitStimuli:
    """The parts of the corpus that the weights of a model are compared with."""

    bos: int
    counts: Int[Tensor, "d_vocab"]  # how often it has each token; BOS counts as absent
    frequent: Int[Tensor, "token"]  # its most frequent tokens, of which copying is asked
    random: Int[Tensor, "batch random_pos"]  # sequences that open with BOS and hold no token twice
    text: Int[Tensor, "window text_pos"]  # sequences of running text that open with BOS


@torch.no_grad()
def head_circuits(model: Transformer, weights: CircuitWeights, stimuli: CircuitStimuli) -> list[Scores]:
    """Compute the quantities of the heads of each layer; `weights` are those of the model."""
    copying, matching = copying_eigenvalues(weights), matching_eigenvalues(weights)
    evaluator = copying_evaluator(model, weights, stimuli.random)
    kept = persistence(model, stimuli.text, stimuli.bos)
    moments = token_moments(weights.W_E, (stimuli.counts / stimuli.counts.sum()).to(weights.W_E.device))
    layers = []
    for i, (own, layer) in enumerate(zip(weights.layers, model.layers, strict=True)):
        bias, distances = layer.attention.position_bias, layer.attention.distances
        ov, qk, read = ov_singular_values(own), qk_singular_values(own), reading_overlaps(own)
        layers.append(
            _diagonal_accuracies(weights, i, stimuli)
            | {
                "copying_eigenvalues": eigenvalue_score(copying[i]),
                "copying_evaluator": evaluator[i],
                "matching_eigenvalues": eigenvalue_score(matching[i]),
                "qk_content_sd": score_spread(own, moments),
                "qk_position_sd": (
                    torch.full_like(kept[i], torch.nan) if bias is None else position_spread(bias, distances)
                ),
                "ov_rank": numerical_rank(ov, weights.d_stream),
                "ov_effective_rank": effective_rank(ov),
                "qk_rank": numerical_rank(qk, weights.d_stream),
                "qk_effective_rank": effective_rank(qk),
                "query_key_overlap": read[:, 0],
                "query_value_overlap": read[:, 1],
                "key_value_overlap": read[:, 2],
                "persistence": kept[i],
            }
        )
    return layers


def _diagonal_accuracies(weights: CircuitWeights, layer: int, stimuli: CircuitStimuli) -> Scores:
    tokens, heads = stimuli.frequent.to(weights.W_E.device), range(weights.heads_per_layer[layer])
    ranks = [diagonal_ranks(full_ov(weights, layer, head, tokens), tokens).cpu() for head in heads]
    return {
        f"copying_top{n}{suffix}": torch.tensor([diagonal_accuracy(of_head, n, by) for of_head in ranks])
        for n in (1, 5)
        for suffix, by in (("", None), ("_weighted", stimuli.counts[stimuli.frequent]))
    }
