"""The similarity of a model's heads, and which can stand in for each other, at its last checkpoint."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.circuits.head_weights import why_no_circuits
from headstream.models.circuits.ov_cosine import ov_cosines
from headstream.models.heads.cka import output_cka
from headstream.models.heads.clusters import cluster_heads
from headstream.models.heads.head import heads_of, mask_without, removed_heads
from headstream.models.heads.paired_ablation import Pair, PairEffects, ablation_losses, pair_effects
from headstream.models.heads.pattern_distance import pattern_distances, sampled_patterns
from headstream.models.heads.references import mean_z
from headstream.models.nodes import Head
from headstream.models.transformer import Transformer
from headstream.tasks.measuring.budgets import windows_within_budget
from headstream.tasks.measuring.checkpoint_weights import checkpoint_weights
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.study.analyses.redundancy_config import RedundancyConfig


def measure_redundancy(config: RedundancyConfig, trained: TrainedModel) -> None:
    """Write head_similarity, head_clusters and head_patterns of the heads that training left, if there are any.

    Cost: distances are of all pairs of heads: as their square. Reruns of later layers are of each head and sequence,
    which `max_reruns` bounds, and of `max_pairs` pairs at most, at the first checkpoint and the last; each as a pass
    grows in layers and vocabulary.

    Raises:
        UserError: the text is too short for one sequence.
        WorkError: the weights are not finite.
    """
    tokens, model, steps = trained.tokens, trained.model, trained.steps
    heads = heads_of(model)
    if not heads:
        return
    text, documents = trained.evaluation_text(windows_within_budget(config.windows, config.max_reruns, len(heads)))
    similarities = {
        "jensen_shannon_distance": pattern_distances(model, text, tokens.bos),
        "output_cka": output_cka(model, text, tokens.bos),
    }
    if why_no_circuits(model.architecture) is None:
        similarities["ov_cosine"] = ov_cosines(checkpoint_weights(model, steps[-1]).layers)
    if steps[0] == 0:
        similarities["initial_distance"] = pattern_distances(trained.at(0), text, tokens.bos)
    trained.on_progress(0.4)
    left = torch.cat([*mask_without(model, removed_heads(model))]).bool().cpu()
    similarities = {name: values[left][:, left] for name, values in similarities.items()}
    distances = similarities["jensen_shannon_distance"]
    layer, head = np.array(heads).T
    clusters = {name: values.numpy() for name, values in cluster_heads(distances, config.cluster_distance).items()}
    trained.write("head_clusters", {"layer": layer, "head": head, **clusters})
    queries, patterns = sampled_patterns(model, text, tokens.bos, config.pattern_queries)
    trained.write("head_patterns", _pattern_columns(heads, queries, patterns[left]))
    pairs = nearest_first(distances)
    if not pairs:
        return
    tried, reference = pairs[: config.max_pairs], trained.reference_text(config.reference_windows).sequences

    def effects(of: Transformer) -> PairEffects:
        return pair_effects(*ablation_losses(of, text, mean_z(of, reference), heads, tried), tried, documents)

    columns = _similarity_columns(heads, pairs, similarities, effects(model))
    trained.on_progress(0.7)
    if steps[0] == 0:
        initial, untried = effects(trained.at(0)), [None] * (len(pairs) - len(tried))
        columns["initial_excess_nats"] = [*initial.excess_nats.tolist(), *untried]
        columns["initial_is_redundant"] = [*initial.redundant, *untried]
    trained.write("head_similarity", columns)


def nearest_first(distances: Float[Tensor, "head head"]) -> list[Pair]:
    """Every pair of heads, from the smallest distance on."""
    pairs = torch.triu_indices(len(distances), len(distances), 1)
    order = distances[pairs[0], pairs[1]].argsort(stable=True)
    return [(first, second) for first, second in pairs.T[order].tolist()]


def _pattern_columns(
    heads: Sequence[Head], queries: Int[Tensor, "query 2"], patterns: Float[Tensor, "head query key"]
) -> dict[str, Any]:
    """Columns of `head_patterns`: a query sees the keys up to its own position."""
    layer, head = np.repeat(np.array(heads), len(queries), axis=0).T
    sequence, position = np.tile(queries.numpy(), (len(heads), 1)).T
    weights = [row[: query + 1].tolist() for own in patterns for row, query in zip(own, queries[:, 1], strict=True)]
    return {"layer": layer, "head": head, "sequence": sequence, "query": position, "weights": weights}


def _similarity_columns(
    heads: Sequence[Head],
    pairs: Sequence[Pair],
    similarities: Mapping[str, Float[Tensor, "head head"]],
    effects: PairEffects,
) -> dict[str, Any]:
    """Columns of `head_similarity`; `effects` are of the first of the pairs."""
    first, second = np.array(pairs).T
    untried = [None] * (len(pairs) - len(effects.both_nats))
    return {
        **dict(zip(("first_layer", "first_head"), np.array(heads)[first].T, strict=True)),
        **dict(zip(("second_layer", "second_head"), np.array(heads)[second].T, strict=True)),
        **{name: values[first, second].numpy() for name, values in similarities.items()},
        "first_effect_nats": effects.alone_nats[first].numpy(),
        "second_effect_nats": effects.alone_nats[second].numpy(),
        "both_effect_nats": [*effects.both_nats.tolist(), *untried],
        "excess_nats": [*effects.excess_nats.tolist(), *untried],
        "excess_sem_nats": [*effects.excess_sem_nats.tolist(), *untried],
        "excess_chance": [*effects.excess_chance.tolist(), *untried],
        "is_redundant": [*effects.redundant, *untried],
    }
