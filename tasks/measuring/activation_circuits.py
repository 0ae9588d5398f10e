"""Circuits of a model on text, at its last checkpoint: paths, bigrams, scores by source, causal checks.

Scores by source are taken at its first checkpoint, too: random weights compose as well, the more so under norms.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from math import isfinite
from typing import Any

import torch

from headstream.models.circuits import paths
from headstream.models.circuits.causal_checks import CausalCheck, causal_checks
from headstream.models.circuits.circuit_writers import InductionCircuit, circuit_writers
from headstream.models.circuits.direct_path import BigramLogits, Bigrams, bigram_logits, fit_bigrams, mean_contributions
from headstream.models.circuits.head_weights import why_no_circuits
from headstream.models.circuits.identities import identity_errors
from headstream.models.circuits.induction_without import Induction
from headstream.models.circuits.order_of_terms import Term, order_of_terms
from headstream.models.circuits.removals import Removal, edges_of
from headstream.models.circuits.score_terms import ScoreTerm, TermSource, score_terms
from headstream.models.circuits.virtual_heads import VirtualPattern, virtual_copying, virtual_norms, virtual_patterns
from headstream.models.circuits.virtual_induction import virtual_induction
from headstream.models.losses import sem_of_parts
from headstream.models.nodes import Head
from headstream.models.stimuli import Stimuli
from headstream.models.transformer import Transformer
from headstream.tasks.measuring.checkpoint_weights import checkpoint_weights
from headstream.tasks.measuring.sequences import RepeatCounts, build_stimuli
from headstream.tasks.measuring.trained_model import Rows, TrainedModel
from headstream.tasks.study.analyses.activation_circuits_config import ActivationCircuitsConfig
from headstream.tasks.text.bigram_counts import count_bigrams
from headstream.tasks.text.windows import training_text

N_IDENTITY_WINDOWS = 4


def measure_activation_circuits(config: ActivationCircuitsConfig, trained: TrainedModel) -> None:
    """Write the tables of paths, scores, virtual heads, bigrams, causal checks and identities.

    Cost: text is rerun from a removal on for `max_pairs` pairs and the writers of `max_circuits` heads at most,
    whatever the number of heads, each rerun as a pass grows; repeats, for each head that may be one of their writers. A
    path's loss takes a product with the vocabulary: for each head, and for `max_pairs` virtual ones. Scores are taken
    apart by all pairs of sources, as the cube of heads, though a source by itself costs most: as their square;
    `max_sources` are reported. Checkpoints don't count.

    Raises:
        UserError: the text is too short for one sequence.
        WorkError: the weights are not finite.
    """
    model, step = trained.model, trained.steps[-1]
    stimuli = build_stimuli(
        trained.tokens,
        model.architecture.n_ctx,
        windows=config.path_windows,
        pattern_windows=config.path_windows,
        repeats=RepeatCounts(config.fixed_period_sequences, config.random_period_sequences, config.seed),
    )
    text, bos = stimuli.text, stimuli.bos
    tables = _paths(config, trained, stimuli)
    trained.on_progress(0.4)
    scores = {at: score_terms(trained.at(at), text, bos, config.max_sources) for at in sorted({trained.steps[0], step})}
    trained.on_progress(0.5)
    tables |= _checks(config, model, stimuli, scores[step])
    trained.on_progress(0.8)
    tables |= _bigrams(config, trained, bos)
    identities = identity_errors(model, text[:N_IDENTITY_WINDOWS, :-1])
    tables["score_terms"] = [_score_row(at, term) for at, terms in scores.items() for term in terms]
    tables["identities"] = [{"identity": name, "difference": error} for name, error in identities.items()]
    for name, rows in tables.items():
        trained.write(name, rows)


def _paths(config: ActivationCircuitsConfig, trained: TrainedModel, stimuli: Stimuli) -> dict[str, Rows]:
    """What paths through heads do to the loss, and what virtual heads are like."""
    model, text, bos = trained.model, stimuli.text, stimuli.bos
    pairs = paths.virtual_heads_of(model.architecture.heads_per_layer)
    composes = why_no_circuits(model.architecture) is None
    weights = checkpoint_weights(model, trained.steps[-1]) if composes else None
    norms = virtual_norms(weights) if weights else {}
    virtual_heads = sorted(pairs, key=lambda pair: -norms.get(pair, 0))[: config.max_pairs]
    copying = virtual_copying(weights, virtual_heads) if weights else {}
    terms = order_of_terms(model, text, virtual_heads)
    trained.on_progress(0.25)
    patterns = virtual_patterns(model, text, bos, virtual_heads)
    inductions = virtual_induction(model, stimuli.random_period, bos, virtual_heads)
    return {
        "path_terms": [_term_row(term) | _linearised(model) for term in terms],
        "virtual_heads": _virtual_rows(pairs, norms, copying, patterns, inductions, terms),
    }


def _checks(
    config: ActivationCircuitsConfig, model: Transformer, stimuli: Stimuli, scores: Sequence[ScoreTerm]
) -> dict[str, Rows]:
    """Induction circuits, and what becomes of later heads without the earlier ones that have most to do with them."""
    pairs = paths.virtual_heads_of(model.architecture.heads_per_layer)
    circuits = circuit_writers(model, stimuli, config.level, config.max_circuits)
    checked = [circuit for circuit in circuits if circuit.writers]
    in_circuits = {(writer, circuit.reader) for circuit in checked for writer in circuit.writers}
    checked_pairs = strongest_pairs(scores, pairs, config.max_pairs) | in_circuits
    removals = [*((edge,) for edge in edges_of(checked_pairs)), *(circuit.edges for circuit in checked)]
    checks = {found.removal: found for found in causal_checks(model, stimuli, removals)}
    return {
        "causal_checks": _check_rows(checked_pairs, checks),
        "joint_checks": [_joint_row(circuit, checks.get(circuit.edges)) for circuit in circuits],
    }


def _bigrams(config: ActivationCircuitsConfig, trained: TrainedModel, bos: int) -> dict[str, Rows]:
    """How well the direct path fits the bigrams of the training text."""
    tokens, model = trained.tokens, trained.model
    windows = training_text(tokens, model.architecture.n_ctx, config.bigram_windows).sequences
    bigrams = Bigrams(*map(torch.from_numpy, count_bigrams(tokens.train, tokens.vocabulary, config.bigram_tokens)))
    logits = bigram_logits(model, bigrams, mean_contributions(model, windows), bos, config.bigram_sources)
    return {
        "bigrams": [fit_bigrams(logits, int(bigrams.count.sum())) | _linearised(model)],
        "bigram_samples": _sample_rows(logits, tokens.token_labels(), config.bigram_samples),
    }


def _linearised(model: Transformer) -> dict[str, bool]:
    return {"linearised": model.architecture.normalization != "none"}


def strongest_pairs(scores: Sequence[ScoreTerm], pairs: Sequence[paths.HeadPath], n: int) -> set[paths.HeadPath]:
    """The pairs in which the earlier head has most to do with the variance of the later one's scores."""
    shares: dict[tuple[TermSource, ...], float] = dict.fromkeys(pairs, 0.0)
    for term in scores:
        for source in {term.query_source, term.key_source}:
            if (source, term.head) in shares and isfinite(term.share):
                shares[source, term.head] += abs(term.share)
    return set(sorted(pairs, key=lambda pair: -shares[pair[0], pair[1]])[:n])


def _term_row(term: Term) -> dict[str, Any]:
    heads = None if term.path is None else [str(head) for head in term.path]
    name = " > ".join(heads) if heads else "feed-forward" if term.order is None else f"order {term.order}"
    values = {name: value for name, value in vars(term).items() if name not in ("order", "path")}
    return {"term": name, "term_order": term.order, "heads": heads, **values}


def _score_row(step: int, term: ScoreTerm) -> dict[str, Any]:
    sources = {"query_source": str(term.query_source), "key_source": str(term.key_source)}
    values = {"composition": term.composition, "covariance": term.covariance, "share": term.share}
    return {"step": step, **term.head._asdict(), **sources, **values}


def _check_rows(pairs: Iterable[paths.HeadPath], checks: Mapping[Removal, CausalCheck]) -> Rows:
    return [
        _columns("writer", writer) | _columns("reader", reader) | {"kind": edge.port} | _effects(checks[(edge,)])
        for writer, reader in pairs
        for edge in edges_of([(writer, reader)])
    ]


def _joint_row(circuit: InductionCircuit, check: CausalCheck | None) -> dict[str, Any]:
    writers = [str(writer) for writer in circuit.writers]
    return _columns("reader", circuit.reader) | {"kind": circuit.port, "writers": writers} | _effects(check)


def _effects(check: CausalCheck | None) -> dict[str, float | None]:
    """The findings of a check; none if there was no check."""
    return {field.name: getattr(check, field.name, None) for field in fields(CausalCheck) if field.name != "removal"}


def _virtual_rows(
    pairs: Sequence[paths.HeadPath],
    norms: Mapping[paths.HeadPath, float],
    copying: Mapping[paths.HeadPath, float],
    patterns: Mapping[paths.HeadPath, VirtualPattern],
    inductions: Mapping[paths.HeadPath, Induction],
    terms: Sequence[Term],
) -> Rows:
    """Rows of `virtual_heads`, of what is known of each pair."""
    effects = {term.path: term for term in terms}
    return [
        _columns("first", pair[0])
        | _columns("second", pair[1])
        | {"ov_norm": norms.get(pair), "copying_eigenvalues": copying.get(pair)}
        | {field.name: getattr(patterns.get(pair), field.name, None) for field in fields(VirtualPattern)}
        | _induction(inductions.get(pair))
        | {name: getattr(effects.get(pair), name, None) for name in ("loss_effect_nats", "logit_share")}
        for pair in pairs
    ]


def _induction(found: Induction | None) -> dict[str, float]:
    if found is None:
        return {}
    scores = {"induction_random_period": found.attention, "induction_copying_logit": found.copying}
    means = {name: score.mean.item() for name, score in scores.items()}
    return means | {f"{name}_sem": sem_of_parts(score.parts).item() for name, score in scores.items()}


def _sample_rows(logits: BigramLogits, labels: Sequence[str], n: int) -> Rows:
    centred = [logits.centred(values) for values in (logits.log_probability, logits.direct, logits.rest)]
    frequent = logits.count.argsort(descending=True, stable=True)[:n]
    columns = (logits.source, logits.target, logits.count, *centred)
    rows = zip(*(column[frequent].tolist() for column in columns), strict=True)
    return [
        {
            "rank": rank,
            "source": labels[source],
            "target": labels[target],
            "n_pairs": count,
            "log_probability_nats": log_probability,
            "direct_logit": direct,
            "rest_logit": rest,
        }
        for rank, (source, target, count, log_probability, direct, rest) in enumerate(rows)
    ]


def _columns(role: str, head: Head) -> dict[str, int]:
    return {f"{role}_layer": head.layer, f"{role}_head": head.head}
