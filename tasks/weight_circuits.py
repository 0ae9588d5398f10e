"""What a model's weights alone say of its circuits, at each of its checkpoints."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from models.circuits.composition import KINDS, Composition, composition, head_pairs, rotated_null
from models.circuits.copying import copying_evaluator, diagonal_accuracy, diagonal_ranks, random_sequences
from models.circuits.eigenvalues import (
    composed_matching_eigenvalues,
    copying_eigenvalues,
    eigenvalue_score,
    matching_eigenvalues,
)
from models.circuits.full_circuits import full_ov, full_qk, position_spread, score_spread
from models.circuits.head_weights import CircuitWeights, circuit_weights, why_no_circuits
from models.circuits.persistence import persistence
from models.circuits.significance import chance_of_initial, chance_of_rotated, significant
from models.circuits.skip_trigram_counts import SkipTrigramCounts
from models.circuits.skip_trigrams import skip_trigrams
from models.circuits.subspaces import (
    bandwidth,
    effective_rank,
    numerical_rank,
    ov_singular_values,
    overlaps,
    qk_singular_values,
    reading_overlaps,
    rewriting,
)
from models.transformer import Transformer
from tasks.checkpoints import checkpoint_steps, load_model
from tasks.circuits_config import CircuitsConfig
from tasks.errors import WorkError
from tasks.tables import write_table
from tasks.tokens import Tokens, require_context

Columns = dict[str, Any]


@dataclass(frozen=True)
class Text:
    """What of the corpus the weights are held against."""

    tokens: Tokens
    counts: Int[Tensor, "d_vocab"]  # of training tokens, BOS counted as absent
    windows: Int[Tensor, "window pos"]  # validation sequences
    random_sequences: Int[Tensor, "batch pos"]


def measure_weight_circuits(
    config: CircuitsConfig,
    training_folder: Path,
    tokens_folder: Path,
    folder: Path,
    model_id: str,
    report: Callable[[float], None] = lambda fraction: None,
) -> dict[str, object]:
    """Write heads and compositions of every checkpoint, and all else of the last one; returns facts about that.

    Where circuits are no products of weights the tables are empty, and a fact says why.

    Raises:
        RequestError: the text is too short for one sequence.
        WorkError: a checkpoint's weights are not finite.
    """
    torch.set_num_threads(1)  # models are measured side by side
    tokens, steps = Tokens.open(tokens_folder), checkpoint_steps(training_folder)
    model = load_model(training_folder, steps[-1])
    n_ctx = model.architecture.n_ctx
    require_context(tokens, n_ctx)
    if reason := why_no_circuits(model.architecture):
        for name in ("heads", "compositions", "skip_trigrams", "subspaces", "eigenvalues"):
            write_table(folder, name, [])
        return {"no_weight_circuits": reason}
    text = read_text(config, tokens, n_ctx)
    heads, compositions, initial = [], [], None
    for step in steps:
        model = load_model(training_folder, step)
        weights = _weights(model, step)
        now = composition(weights)
        initial = initial or now
        heads.append({"step": step} | head_columns(model, weights, text))
        compositions.append({"step": step} | composition_columns(config, weights, now, initial))
        report(len(heads) / (len(steps) + 1))
    tables = {
        "heads": pd.concat(map(pd.DataFrame, heads)),
        "compositions": pd.concat(map(pd.DataFrame, compositions)),
        "skip_trigrams": skip_trigram_columns(config, weights, tokens, n_ctx),
        "subspaces": subspace_columns(weights),
        "eigenvalues": eigenvalue_columns(weights, now),
    }
    for name, columns in tables.items():
        write_table(folder, name, pd.DataFrame(columns).assign(model_id=model_id))
    return _facts(heads[-1], compositions[-1], tables["skip_trigrams"]) | {
        "bandwidth": bandwidth(weights, model.architecture.mlp_width)
    }


def read_text(config: CircuitsConfig, tokens: Tokens, n_ctx: int) -> Text:
    """What every model of one corpus and n_ctx is measured on."""
    counts = torch.from_numpy(np.asarray(tokens.counts, dtype=np.int64)).clone()
    counts[tokens.bos] = 0
    starts = _spread(len(tokens.validation), n_ctx - 1, config.persistence_windows)
    windows = np.insert(tokens.validation.windows(starts, n_ctx - 1), 0, tokens.bos, axis=1)
    generator = torch.Generator().manual_seed(config.seed)
    sequences = random_sequences(counts, tokens.bos, n_ctx, config.evaluator_sequences, generator)
    return Text(tokens, counts, torch.from_numpy(windows), sequences)


def head_columns(model: Transformer, weights: CircuitWeights, text: Text) -> Columns:
    """Columns of `heads` at one checkpoint."""
    used = text.counts.nonzero().flatten()
    frequency = text.counts / text.counts.sum()
    diagonal, content = [], []
    for layer, head in _heads(weights):
        ranks = diagonal_ranks(full_ov(weights, layer, head), used)
        diagonal.append([diagonal_accuracy(ranks, n, w) for w in (None, frequency[used]) for n in (1, 5)])
        content.append(score_spread(full_qk(weights, layer, head), frequency.to(weights.W_E)))
    top1, top5, top1_weighted, top5_weighted = np.array(diagonal).reshape(-1, 4).T
    by_layer = {
        "copying_eigenvalues": map(eigenvalue_score, copying_eigenvalues(weights)),
        "copying_evaluator": copying_evaluator(model, weights, text.random_sequences),
        "matching_eigenvalues": map(eigenvalue_score, matching_eigenvalues(weights)),
        "qk_position_sd": [_position_spread(layer.attention) for layer in model.layers],
        "persistence": persistence(model, text.windows, text.tokens.bos),
    }
    singular_values = {
        "ov": map(ov_singular_values, weights.layers),
        "qk": map(qk_singular_values, weights.layers),
    }
    for circuit, layers in singular_values.items():
        values = list(layers)
        by_layer[f"{circuit}_rank"] = [numerical_rank(s, weights.d_stream) for s in values]
        by_layer[f"{circuit}_effective_rank"] = [effective_rank(s) for s in values]
    read = _flat(map(reading_overlaps, weights.layers), (0, 3))
    places = list(_heads(weights))
    return {
        "layer": [layer for layer, _ in places],
        "head": [head for _, head in places],
        "copying_top1": top1,
    }
