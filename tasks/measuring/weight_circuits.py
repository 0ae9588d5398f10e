"""Circuits of a model by its weights, at each of its checkpoints."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from headstream.models.bos_in_tensors import without_bos
from headstream.models.circuits.composition import Composition, PairKind, composition, head_pairs, rotated_null
from headstream.models.circuits.copying import random_sequences
from headstream.models.circuits.eigenvalues import (
    composed_matching_eigenvalues,
    copying_eigenvalues,
    eigenvalue_score,
    matching_eigenvalues,
)
from headstream.models.circuits.head_circuits import CircuitStimuli, Scores, head_circuits
from headstream.models.circuits.head_weights import CircuitWeights, why_no_circuits
from headstream.models.circuits.significance import chance_of_either, chance_of_initial, chance_of_rotated
from headstream.models.circuits.skip_trigram_counts import SkipTrigramCounts
from headstream.models.circuits.skip_trigrams import skip_trigrams
from headstream.models.circuits.subspaces import overlaps, rewriting
from headstream.models.multiple_tests import significant
from headstream.models.nodes import HEAD_PORTS
from headstream.tasks.measuring.checkpoint_weights import checkpoint_weights
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.study.analyses.weight_circuits_config import WeightCircuitsConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.windows import evaluation_text

Columns = dict[str, Any]  # arrays of one length
PAIR = ("writer_layer", "writer_head", "reader_layer", "reader_head")
KEYS = HEAD_PORTS.index("K")
TABLES = ("heads", "compositions", "skip_trigrams", "subspaces", "eigenvalues")


def measure_weight_circuits(config: WeightCircuitsConfig, trained: TrainedModel) -> None:
    """Write heads and compositions of every checkpoint, subspaces and skip-trigrams of the first and last, eigenvalues
    of the last.

    All are empty where norms keep paths from being products of weights (`why_no_circuits`).

    Cost: at each checkpoint, with heads times vocabulary times the tokens that copying is tested on, and scores of all
    pairs of heads, which are as the square of their number; eigenvalues of `matching_pairs` of them, whatever the
    number of heads. Text only counts for persistence and skip-trigrams.

    Raises:
        UserError: the text is too short for one sequence.
        WorkError: a checkpoint's weights are not finite.
    """
    tokens, steps, architecture = trained.tokens, trained.steps, trained.model.architecture
    tables: dict[str, list[Columns]] = {name: [] for name in TABLES}
    if why_no_circuits(architecture) is None:
        stimuli = _circuit_stimuli(config, tokens, architecture.n_ctx)
        skip_trigram_counts = _skip_trigram_counts(config, tokens, architecture.n_ctx)
        initial = None
        for i, step in enumerate(steps):
            model = trained.at(step)
            weights = checkpoint_weights(model, step)
            now = composition(weights)
            initial = now if step == 0 else initial
            tables["heads"].append({"step": step} | _head_columns(head_circuits(model, weights, stimuli)))
            tables["compositions"].append({"step": step} | composition_columns(config, weights, now, initial))
            if step in (steps[0], steps[-1]):
                found = _skip_trigram_columns(config, weights, tokens, skip_trigram_counts)
                tables["skip_trigrams"] += [{"step": step} | part for part in found]
                tables["subspaces"].append({"step": step} | _subspace_columns(weights))
            trained.on_progress((i + 1) / (len(steps) + 1))
        tables["eigenvalues"] = _eigenvalue_columns(weights, best_writers(weights, now))
    for name, parts in tables.items():
        trained.write(name, _one_below_the_other(parts))


def _circuit_stimuli(config: WeightCircuitsConfig, tokens: Tokens, n_ctx: int) -> CircuitStimuli:
    """The parts of a corpus that every model of it, and of one n_ctx, is compared with."""
    counts = without_bos(torch.from_numpy(tokens.counts.astype(np.int64)), tokens.bos)
    generator = torch.Generator().manual_seed(config.seed)
    random = random_sequences(counts, tokens.bos, n_ctx, config.evaluator_sequences, generator)
    return CircuitStimuli(
        bos=tokens.bos,
        counts=counts,
        frequent=counts.argsort(descending=True, stable=True)[: min(config.copying_tokens, int((counts > 0).sum()))],
        random=random,
        text=evaluation_text(tokens, n_ctx - 1, config.persistence_windows).sequences,
    )


def _head_columns(layers: Sequence[Scores]) -> Columns:
    parts = []
    for layer, scores in enumerate(layers):
        columns = {name: values.numpy(force=True) for name, values in scores.items()}
        n_heads = len(scores["ov_rank"])
        parts.append({"layer": np.full(n_heads, layer), "head": np.arange(n_heads), **columns})
    return _one_below_the_other(parts)


def composition_columns(
    config: WeightCircuitsConfig, weights: CircuitWeights, now: Composition, initial: Composition | None
) -> Columns:
    """Columns of `compositions` at one checkpoint; without an initialisation, nothing is compared with it."""
    rotated_mean, rotated_sd = rotated_null(weights, config.rotations, torch.Generator().manual_seed(config.seed))
    chance = chance_of_either(now, initial)
    missing = torch.full_like(chance, torch.nan)
    composed = significant(chance, config.level).numpy().astype(object)
    composed[chance.isnan().numpy()] = None
    values = {
        "score": now.score,
        "null_mean": torch.full_like(chance, now.null_mean),
        "null_sd": now.null_sd,
        "z": now.z,
        "rotated_mean": rotated_mean,
        "rotated_sd": rotated_sd,
        "initial_score": initial.score if initial else missing,
        "rotated_chance": chance_of_rotated(now),
        "initial_chance": chance_of_initial(now, initial) if initial else missing,
        "matching_eigenvalues": _matching_scores(weights, now, config.matching_pairs),
    }
    return {**_pairs_and_kinds(weights), **_flattened(values), "significant": composed.flatten()}


def _matching_scores(weights: CircuitWeights, now: Composition, most: int) -> PairKind:
    """Eigenvalue scores of K-composed circuits: of each head's best writer, and of the pairs that compose most."""
    by_keys = now.z[:, KEYS].nan_to_num(-np.inf)
    chosen = torch.cat([best_writers(weights, now), by_keys.argsort(descending=True, stable=True)[:most]]).unique()
    scores = torch.full_like(now.z, torch.nan)
    scores[chosen, KEYS] = eigenvalue_score(
        composed_matching_eigenvalues(weights, head_pairs(weights.heads_per_layer)[chosen])
    )
    return scores


def best_writers(weights: CircuitWeights, now: Composition) -> Int[Tensor, "_"]:
    """Of each later head, which of `head_pairs` is the one that it K-composes with most; of equals the first."""
    by_keys, pairs = now.z[:, KEYS].nan_to_num(-np.inf), head_pairs(weights.heads_per_layer)
    readers, own = pairs[:, 2:].unique(dim=0, return_inverse=True)
    order = by_keys.argsort(descending=True, stable=True)
    return torch.stack([order[own[order] == reader][0] for reader in range(len(readers))]) if len(pairs) else order


def _subspace_columns(weights: CircuitWeights) -> Columns:
    overlap, random_overlap = overlaps(weights)
    rewritten = torch.full_like(overlap, torch.nan)
    rewritten[:, HEAD_PORTS.index("V")] = rewriting(weights).double()
    values = {"overlap": overlap, "random_overlap": random_overlap, "rewriting": rewritten}
    return _pairs_and_kinds(weights) | _flattened(values)


def _eigenvalue_columns(weights: CircuitWeights, best: Int[Tensor, "_"]) -> list[Columns]:
    """Columns of `eigenvalues`, a part a head and circuit."""
    spectra: dict[str, list[Tensor]] = {"OV": copying_eigenvalues(weights), "QK": matching_eigenvalues(weights)}
    parts = [
        _spectrum(layer, head, circuit, eigenvalues)
        for circuit, layers in spectra.items()
        for layer, heads in enumerate(layers)
        for head, eigenvalues in enumerate(heads)
    ]
    pairs = head_pairs(weights.heads_per_layer)[best]
    for pair, eigenvalues in zip(pairs.tolist(), composed_matching_eigenvalues(weights, pairs), strict=True):
        *writer, layer, head = pair
        parts.append(_spectrum(layer, head, "K-composed", eigenvalues) | dict(zip(PAIR[:2], writer, strict=True)))
    return parts


def _skip_trigram_counts(config: WeightCircuitsConfig, tokens: Tokens, n_ctx: int) -> SkipTrigramCounts:
    windows = tokens.train.spread_windows(max(1, config.statistics_tokens // n_ctx), n_ctx)
    return SkipTrigramCounts(torch.from_numpy(windows), tokens.vocabulary, tokens.bos)


def _skip_trigram_columns(
    config: WeightCircuitsConfig, weights: CircuitWeights, tokens: Tokens, corpus: SkipTrigramCounts
) -> list[Columns]:
    """Columns of `skip_trigrams` at one checkpoint, a part a head."""
    labels = np.array([*tokens.token_labels(), None], dtype=object)  # -1, no token, finds None
    parts = []
    for layer, n_heads in enumerate(weights.heads_per_layer):
        for head in range(n_heads):
            strongest = skip_trigrams(weights, layer, head, corpus, config.top_skip_trigrams, config.min_count)
            found = {name: values.numpy() for name, values in strongest.items()}
            text = ("source", "destination", "output", "other_destination", "other_output")
            place = {"layer": layer, "head": head, "rank": np.arange(len(found["source"]))}
            parts.append(place | found | {name: labels[found[name]] for name in text})
    return parts


def _spectrum(layer: int, head: int, circuit: str, eigenvalues: Tensor) -> Columns:
    real, imaginary = eigenvalues.real.numpy(), eigenvalues.imag.numpy()
    no_writer = dict.fromkeys(PAIR[:2], np.nan)
    place = {"layer": layer, "head": head, "circuit": circuit, "rank": np.arange(len(eigenvalues))}
    return place | no_writer | {"real": real, "imaginary": imaginary}


def _pairs_and_kinds(weights: CircuitWeights) -> Columns:
    pairs = head_pairs(weights.heads_per_layer).repeat_interleave(len(HEAD_PORTS), 0)
    columns: Columns = {name: column.numpy() for name, column in zip(PAIR, pairs.T, strict=True)}
    return columns | {"kind": np.tile(np.array(HEAD_PORTS, dtype=object), len(pairs) // len(HEAD_PORTS))}


def _flattened(values: dict[str, Tensor]) -> Columns:
    return {name: of_pairs.flatten().numpy() for name, of_pairs in values.items()}


def _one_below_the_other(parts: Sequence[Columns]) -> Columns:
    """The parts' columns joined; a scalar stands for every row of its part."""
    n_rows = [max((len(c) for c in part.values() if isinstance(c, np.ndarray)), default=0) for part in parts]
    filled = [(part, n) for part, n in zip(parts, n_rows, strict=True) if n]
    names = filled[0][0] if filled else ()
    return {name: np.concatenate([np.broadcast_to(part[name], n) for part, n in filled]) for name in names}
