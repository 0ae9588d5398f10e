"""Behaviour of a model at each of its checkpoints: losses, scores of every head, and one passage to look at."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from headstream.models.bos import NO_BOS
from headstream.models.clustered_errors import clustered_mean
from headstream.models.heads.attention_flow import aggregate_attention
from headstream.models.heads.gate_activity import gate_activity
from headstream.models.heads.head_behaviour import Behaviour, model_behaviour
from headstream.models.losses import sequence_losses
from headstream.models.stimuli import RunningText
from headstream.models.transformer import Transformer
from headstream.tasks.measuring.sequences import RepeatCounts, build_stimuli, choose_passage
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.study.analyses.behaviour_config import BehaviourConfig
from headstream.tasks.text.windows import training_text
from headstream.tasks.training.checkpoints import tokens_at


def measure_behaviour(config: BehaviourConfig, trained: TrainedModel) -> None:
    """Write losses and scores of every head at each checkpoint, and attention on one passage at the last.

    Cost: a few passes of all texts at each checkpoint, each as a pass grows in layers, heads and vocabulary. Attention
    flow, of one passage at the last, grows with the square of layers.

    Raises:
        UserError: the validation text is too short for one sequence.
    """
    tokens, model, steps = trained.tokens, trained.model, trained.steps
    n_ctx, labels = model.architecture.n_ctx, tokens.token_labels()
    stimuli = build_stimuli(
        tokens,
        n_ctx,
        windows=config.loss_windows,
        pattern_windows=config.pattern_windows,
        repeats=RepeatCounts(config.fixed_period_sequences, config.random_period_sequences, config.seed),
    )
    measured: dict[int, Behaviour] = {}
    for step in steps:
        measured[step] = model_behaviour(trained.at(step), stimuli)
        trained.on_progress(len(measured) / len(steps))
    tables = _behaviour_rows(measured, tokens_at(trained.training_folder))
    tables["evaluations"][-1] |= _training_loss(model, training_text(tokens, n_ctx, config.loss_windows))
    for name, rows in tables.items():
        trained.write(name, rows)
    if measured[steps[-1]].layers:
        passage = choose_passage(tokens, min(config.passage_tokens, n_ctx))
        trained.write("attention_samples", _attention_samples(model, passage, labels))
        trained.write("attention_aggregates", _aggregate_columns(model, passage, labels))
        if model.architecture.gates != "none":
            trained.write("gate_activity", _gate_rows(model, stimuli.text, labels, tokens.bos))


def _training_loss(model: Transformer, text: RunningText) -> dict[str, float]:
    """The loss on training text as it is measured on validation text."""
    loss = clustered_mean(sequence_losses(model, text.sequences), text.documents)
    return {"train_loss_nats": loss.mean.item(), "train_loss_sem_nats": loss.sem.item()}


def _attention_samples(
    model: Transformer, passage: NDArray[np.int64], labels: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """Columns of attention by every head, from each query of a passage to each key that it sees."""
    patterns = [layer.pattern[0] for layer in model.trace(torch.from_numpy(passage)[None].to(model.W_E.device)).layers]
    n_heads = [len(pattern) for pattern in patterns]
    layer, head = np.repeat(np.arange(len(patterns)), n_heads), np.concatenate([np.arange(n) for n in n_heads])
    query, key = np.tril_indices(len(passage))
    return {
        "layer": np.repeat(layer, len(query)),
        "head": np.repeat(head, len(query)),
        **_by_pair(passage, labels, len(head)),
        "weight": torch.cat(patterns)[:, query, key].flatten().numpy(force=True),
    }


def _aggregate_columns(
    model: Transformer, passage: NDArray[np.int64], labels: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """Columns of `attention_aggregates`, of each query of a passage and each key that it sees."""
    query, key = np.tril_indices(len(passage))
    kept = [
        (method, layer, pattern[query, key].numpy())
        for method, patterns in aggregate_attention(model, torch.from_numpy(passage)).items()
        for layer, pattern in enumerate(patterns)
        if not pattern.isnan().any()
    ]
    methods, layers, weights = zip(*kept, strict=True)
    return {
        "method": np.repeat(methods, len(query)),
        "layer": np.repeat(layers, len(query)),
        **_by_pair(passage, labels, len(kept)),
        "weight": np.concatenate(weights),
    }


def _by_pair(passage: NDArray[np.int64], labels: Sequence[str], times: int) -> dict[str, NDArray[Any]]:
    """Columns that say which query and key of a passage, so many times over."""
    query, key = np.tril_indices(len(passage))
    text = np.array([labels[token] for token in passage], dtype=object)
    columns = {"query": query, "key": key, "query_token": text[query], "key_token": text[key]}
    return {name: np.tile(values, times) for name, values in columns.items()}


def _gate_rows(
    model: Transformer, sequences: Int[Tensor, "batch pos"], labels: Sequence[str], bos: int
) -> list[dict[str, Any]]:
    """Rows of how often each head's gate is open, by class of token."""
    classes = [token_class(label) for label in labels]
    if bos != NO_BOS:
        classes[bos] = "bos"
    names = sorted(set(classes))
    activity = gate_activity(model, sequences, torch.tensor([names.index(name) for name in classes]))
    return [
        {"layer": layer, "head": head, "token_class": name, "active_fraction": fraction}
        for layer, heads in enumerate(activity)
        for head, fractions in enumerate(heads.tolist())
        for name, fraction in zip(names, fractions, strict=True)
        if fraction == fraction
    ]


def token_class(label: str) -> str:
    r"""What a token, as people read it (a space is ·, a line end \n), is made of: the kind of its first visible sign.

    >>> [token_class(label) for label in ("·def", "\\n··", "12", "()", "_x", "·", "\\\\n")]
    ['word', 'space', 'number', 'punctuation', 'word', 'space', 'punctuation']
    """
    text = label.replace("\\n", "·").replace("\\t", "·").lstrip("·")
    if not text:
        return "space"
    return "number" if text[0].isdigit() else "word" if text[0].isalpha() or text[0] == "_" else "punctuation"


def _behaviour_rows(
    measured: Mapping[int, Behaviour], tokens: Mapping[int, int | None]
) -> dict[str, list[dict[str, Any]]]:
    """Rows of each table, of what was measured at each step, after so many tokens; NaN where there is no value."""
    evaluations, position_losses, repeat_losses, heads = [], [], [], []
    for step, behaviour in measured.items():
        evaluation: dict[str, Any] = behaviour.text | behaviour.repeats
        by_position, by_occurrence = map(evaluation.pop, ("position_losses_nats", "occurrence_losses_nats"))
        evaluations.append({"step": step, "tokens": tokens[step], **evaluation})
        position_losses += [
            {"step": step, "position": position, "loss_nats": loss}
            for position, loss in enumerate(by_position.tolist())
        ]
        repeat_losses += [
            {"step": step, "occurrence": occurrence, "loss_nats": loss}
            for occurrence, loss in enumerate(by_occurrence.tolist(), start=1)
        ]
        for layer, scores in enumerate(behaviour.layers):
            columns = {name: values.tolist() for name, values in scores.items()}
            heads += [
                {"step": step, "layer": layer, "head": head, **dict(zip(columns, values, strict=True))}
                for head, values in enumerate(zip(*columns.values(), strict=True))
            ]
    return {
        "evaluations": evaluations,
        "position_losses": position_losses,
        "repeat_losses": repeat_losses,
        "heads": heads,
    }
