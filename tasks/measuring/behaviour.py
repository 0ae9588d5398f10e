"""What a model does at each of its checkpoints: losses, scores of every head, and one passage to look at."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from models.heads.gate_activity import gate_activity
from models.heads.head_behaviour import Behaviour, model_behaviour
from models.repeats import fixed_period_repeats, random_period_repeats, repeated_bigrams
from models.stimuli import Stimuli
from models.transformer import Transformer
from tasks.measuring.trained_model import TrainedModel
from tasks.study.analysis_config import BehaviourConfig
from tasks.text.tokens import Tokens
from tasks.text.windows import evaluation_text
from tasks.training.checkpoints import tokens_per_step

MAX_PASSAGES = 4096  # windows among which the passage is chosen


def measure_behaviour(
    config: BehaviourConfig,
    trained: TrainedModel,
    folder: Path,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> dict[str, object]:
    """Measure every checkpoint of a model into the tables of `folder`; returns facts about the last one.

    `on_progress` hears the fraction done after each checkpoint.

    Raises:
        UserError: the validation text is too short for one sequence.
    """
    (tokens, model), steps = trained.open(), trained.steps
    n_ctx = model.architecture.n_ctx
    stimuli = build_stimuli(config, tokens, n_ctx)
    measured: dict[int, Behaviour] = {}
    for step in steps:
        measured[step] = model_behaviour(trained.at(step), stimuli)
        on_progress(len(measured) / len(steps))
    tables = behaviour_rows(measured, tokens_per_step(trained.training_folder))
    for name, rows in tables.items():
        trained.write(folder, name, rows)
    if measured[steps[-1]].layers:
        passage = choose_passage(tokens, min(config.passage_tokens, n_ctx))
        samples = attention_samples(model, passage, tokens.token_labels())
        trained.write(folder, "attention_samples", samples)
        if model.architecture.gates != "none":
            rows = gate_rows(model, stimuli.text, tokens.token_labels(), tokens.bos)
            trained.write(folder, "gate_activity", rows)
    return _facts(tables)


def build_stimuli(config: BehaviourConfig, tokens: Tokens, n_ctx: int) -> Stimuli:
    """The sequences that every model of one corpus and n_ctx is measured on."""
    text = evaluation_text(tokens, n_ctx, config.loss_windows)
    n_patterns = min(config.pattern_windows, len(text))
    for_patterns = torch.zeros(len(text), dtype=torch.bool)
    for_patterns[torch.arange(n_patterns) * len(text) // n_patterns] = True
    generator = torch.Generator().manual_seed(config.seed)
    counts = torch.from_numpy(np.asarray(tokens.counts, dtype=np.int64))
    repeats = counts, tokens.bos, n_ctx
    return Stimuli(
        bos=tokens.bos,
        text=text[for_patterns],
        more_text=text[~for_patterns],
        fixed_period=fixed_period_repeats(*repeats, config.fixed_period_sequences, generator),
        random_period=random_period_repeats(*repeats, config.random_period_sequences, generator),
    )


def choose_passage(tokens: Tokens, n_tokens: int) -> NDArray[np.int64]:
    """The window of validation text in which most different bigrams come again: no model has a say in it."""
    windows = evaluation_text(tokens, n_tokens - 1, MAX_PASSAGES)
    return windows[repeated_bigrams(windows, tokens.bos).argmax()].numpy()  # the first of equals


def attention_samples(model: Transformer, passage: NDArray[np.int64], labels: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Columns of attention by every head, from each query of a passage to each key that it sees."""
    patterns = [layer.pattern[0] for layer in model.trace(torch.from_numpy(passage)[None]).layers]
    n_heads = [len(pattern) for pattern in patterns]
    layer, head = np.repeat(np.arange(len(patterns)), n_heads), np.concatenate([np.arange(n) for n in n_heads])
    query, key = np.tril_indices(len(passage))
    text = np.array([labels[token] for token in passage], dtype=object)
    by_pair = {"query": query, "key": key, "query_token": text[query], "key_token": text[key]}
    return {
        "layer": np.repeat(layer, len(query)),
        "head": np.repeat(head, len(query)),
        **{name: np.tile(values, len(head)) for name, values in by_pair.items()},
        "weight": torch.cat(patterns)[:, query, key].flatten().numpy(force=True),
    }


def gate_rows(
    model: Transformer, sequences: Int[Tensor, "batch pos"], labels: Sequence[str], bos: int
) -> list[dict[str, Any]]:
    """How often each head's gate is open, by class of token."""
    classes = [token_class(label) for label in labels]
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

    >>> [token_class(label) for label in ("·def", "\\n··", "12", "()", "_x", "·")]
    ['word', 'space', 'number', 'punctuation', 'word', 'space']
    """
    text = label.replace("\\n", "·").replace("\\t", "·").lstrip("·")
    if not text:
        return "space"
    return "number" if text[0].isdigit() else "word" if text[0].isalpha() or text[0] == "_" else "punctuation"


def behaviour_rows(measured: Mapping[int, Behaviour], tokens_per_step: int) -> dict[str, list[dict[str, Any]]]:
    """Rows of each table, of what was measured at each step; NaN where there is no value."""
    evaluations, position_losses, repeat_losses, heads = [], [], [], []
    for step, behaviour in measured.items():
        text, repeats = vars(behaviour.text).copy(), vars(behaviour.repeats).copy()
        by_position, by_occurrence = text.pop("position_losses_nats"), repeats.pop("occurrence_losses_nats")
        evaluations.append({"step": step, "tokens": step * tokens_per_step, **text, **repeats})
        position_losses += [
            {"step": step, "position": position, "loss_nats": loss}
            for position, loss in enumerate(by_position.tolist())
        ]
        repeat_losses += [
            {"step": step, "occurrence": occurrence, "loss_nats": loss}
            for occurrence, loss in enumerate(by_occurrence.tolist(), start=1)
        ]
        for layer, scores in enumerate(behaviour.layers):
            columns = {name: values.tolist() for name, values in vars(scores).items()}
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


def _facts(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, object]:
    """The last checkpoint in a few numbers."""
    last = tables["evaluations"][-1]
    heads = [row for row in tables["heads"] if row["step"] == last["step"]]
    numbers = {
        "validation_loss_nats": last["validation_loss_nats"],
        "repeat_gain_nats": last["repeat_gain_nats"],
        **{
            f"best_{score}": max((head[score] for head in heads), default=np.nan)
            for score in ("previous_token", "induction_random_period")
        },
    }
    return {"checkpoints": len(tables["evaluations"]), **{k: v if v == v else None for k, v in numbers.items()}}
