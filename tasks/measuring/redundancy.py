"""How alike a model's heads are, which do for each other, and their attention put together, at its last checkpoint."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.circuits.head_weights import stack_heads, why_no_circuits
from models.circuits.ov_cosine import ov_cosines
from models.heads.attention_flow import attention_aggregates
from models.heads.cka import output_cka
from models.heads.clusters import cluster_heads
from models.heads.head import heads_of
from models.heads.paired_ablation import Pair, PairEffects, ablation_losses, pair_effects
from models.heads.pattern_distance import pattern_distances
from models.heads.references import mean_z
from models.transformer import Transformer
from tasks.measuring.behaviour import choose_passage
from tasks.measuring.trained_model import TrainedModel
from tasks.measuring.weight_circuits import finite_weights
from tasks.study.analysis_config import BehaviourConfig, RedundancyConfig
from tasks.text.tokens import Tokens
from tasks.text.windows import evaluation_text, reference_text

Columns = dict[str, Any]


def measure_redundancy(
    config: RedundancyConfig,
    trained: TrainedModel,
    folder: Path,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> dict[str, object]:
    """Write head_similarity, head_clusters and attention_aggregates; without heads, none of them.

    Raises:
        UserError: the text is too short for one sequence.
        WorkError: the weights are not finite.
    """
    tokens, model = trained.open()
    steps, architecture = trained.steps, model.architecture
    n_ctx = architecture.n_ctx
    places = heads_of(model)
    if not places:
        return {"heads": 0, "clusters": 0, "pairs_tried": 0, "redundant_pairs": None}
    weights = None if why_no_circuits(architecture) else finite_weights(model, steps[-1])
    text = evaluation_text(tokens, n_ctx, config.windows)

    similarities = {
        "jensen_shannon_distance": pattern_distances(model, text, tokens.bos),
        "output_cka": output_cka(model, text, tokens.bos),
    }
    if weights is not None:
        similarities["ov_cosine"] = ov_cosines(stack_heads(weights.layers))
    if steps[0] == 0:
        initial = trained.at(0)
        similarities["initial_distance"] = pattern_distances(initial, text, tokens.bos)
    on_progress(0.4)
    distances = similarities["jensen_shannon_distance"]
    clusters = cluster_heads(distances, config.cluster_distance)
    pairs = nearest_first(distances)
    tried = pairs[: config.max_pairs]
    fill = mean_z(model, reference_text(tokens, n_ctx, config.reference_windows))
    effects = pair_effects(ablation_losses(model, text, fill, tried), tried)
    on_progress(0.8)

    layer, head = np.array(places).T
    tables = {
        "head_clusters": {"layer": layer, "head": head, **{k: v.numpy() for k, v in vars(clusters).items()}},
        "attention_aggregates": aggregate_columns(model, tokens),
    }
    if pairs:
        tables["head_similarity"] = similarity_columns(places, pairs, similarities, effects)
    for name, columns in tables.items():
        trained.write(folder, name, columns)
    on_progress(1.0)
    return {
        "heads": len(places),
        "clusters": int(clusters.cluster.max()) + 1,
        "pairs_tried": len(tried),
        "redundant_pairs": sum(map(bool, effects.redundant)) if tried and len(text) > 1 else None,
    }


def nearest_first(distances: Float[Tensor, "head head"]) -> list[Pair]:
    """Every pair of heads, from the smallest distance on."""
    pairs = torch.triu_indices(len(distances), len(distances), 1)
    order = distances[pairs[0], pairs[1]].argsort(stable=True)
    return [(first, second) for first, second in pairs.T[order].tolist()]


def similarity_columns(
    places: Sequence[tuple[int, int]],
    pairs: Sequence[Pair],
    similarities: Mapping[str, Float[Tensor, "head head"]],
    effects: PairEffects,
) -> Columns:
    """Columns of `head_similarity`; `effects` are of the first of the pairs."""
    first, second = np.array(pairs).T
    untried = [None] * (len(pairs) - len(effects.both_nats))
    return {
        **dict(zip(("first_layer", "first_head"), np.array(places)[first].T, strict=True)),
        **dict(zip(("second_layer", "second_head"), np.array(places)[second].T, strict=True)),
        **{name: values[first, second].numpy() for name, values in similarities.items()},
        "first_effect_nats": effects.alone_nats[first].numpy(),
        "second_effect_nats": effects.alone_nats[second].numpy(),
        "both_effect_nats": [*effects.both_nats.tolist(), *untried],
        "excess_sem_nats": [*effects.excess_sem_nats.tolist(), *untried],
        "is_redundant": [*effects.redundant, *untried],
    }


def aggregate_columns(model: Transformer, tokens: Tokens) -> Columns:
    """Columns of `attention_aggregates`, of each query of the passage and each key that it sees."""
    passage = choose_passage(tokens, min(BehaviourConfig().passage_tokens, model.architecture.n_ctx))
    aggregates = attention_aggregates(model, torch.from_numpy(passage))
    labels = np.array(tokens.token_labels(), dtype=object)[passage]
    query, key = np.tril_indices(len(passage))
    kept = [
        (method, layer, pattern[query, key].numpy())
        for method, patterns in aggregates.items()
        for layer, pattern in enumerate(patterns)
        if not pattern.isnan().any()
    ]
    methods, layers, weights = zip(*kept, strict=True)
    by_pair = {"query": query, "key": key, "query_token": labels[query], "key_token": labels[key]}
    return {
        "method": np.repeat(methods, len(query)),
        "layer": np.repeat(layers, len(query)),
        **{name: np.tile(values, len(kept)) for name, values in by_pair.items()},
        "weight": np.concatenate(weights),
    }
