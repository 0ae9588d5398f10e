"""Measures the behaviour of a model and of each head on sequences: one number per quantity, NaN if it has none.

A sequence opens with BOS, and its last token is only predicted, not read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.frozen import freeze_trace
from headstream.models.heads.attended_keys import (
    KeysOf,
    attention_on,
    duplicate_token_keys,
    induction_keys,
    previous_token_keys,
)
from headstream.models.heads.content_attention import ContentAttention
from headstream.models.heads.patterns import pattern_statistics, positional_offset, visible_keys
from headstream.models.losses import (
    Losses,
    next_token_losses,
    parts_of_mean,
    repeat_losses,
    sem_of_parts,
    text_losses,
    token_losses,
)
from headstream.models.nodes import Head
from headstream.models.repeats import Repeats
from headstream.models.stimuli import Stimuli
from headstream.models.transformer import LayerTrace, Trace, Transformer

ByQuery = dict[str, Float[Tensor, "_batch head q_pos"]]
ByHead = dict[str, Float[Tensor, "_"]]
Statistics = Callable[[Trace, Tensor, Tensor], list[ByQuery]]  # from a run, its tokens and targets, for each layer

CONTENT_ON_TEXT: Mapping[str, KeysOf] = {"duplicate_token": duplicate_token_keys, "induction_natural": induction_keys}
CONTENT_ON_REPEATS: Mapping[str, KeysOf] = {"induction_random_period": induction_keys}


@dataclass(frozen=True)
class Behaviour:
    """The behaviour of a model and its heads on some stimuli."""

    text: Losses
    repeats: Losses
    layers: list[ByHead]  # means over the queries that count


@dataclass(frozen=True)
class _Layer:
    """What was seen of a layer's heads: statistics of each query, and attention that follows content."""

    by_query: ByQuery
    content: Mapping[str, ContentAttention]


@torch.inference_mode()
def model_behaviour(model: Transformer, stimuli: Stimuli) -> Behaviour:
    """Measure a model's losses and the behaviour of its heads."""
    bos = stimuli.bos
    losses, on_text = _observe(
        model,
        stimuli.text,
        bos,
        lambda trace, tokens, _: [
            _text_statistics(seen.pattern, tokens, bos, layer.attention.distances) | {"active_fraction": _open(seen)}
            for layer, seen in zip(model.layers, trace.layers, strict=True)
        ],
        CONTENT_ON_TEXT,
    )

    def matching(trace: Trace, tokens: Tensor, _: Tensor) -> list[ByQuery]:
        keys = induction_keys(tokens, bos)
        return [{"prefix_matching": attention_on(layer.pattern.float(), keys)} for layer in trace.layers]

    def copying(trace: Trace, tokens: Tensor, targets: Tensor) -> list[ByQuery]:
        followed = _logits_of_what_follows(model, trace, tokens, targets, bos)
        return [{"induction_copying_logit": logits} for logits in followed]

    _, prefix_matching = _on_repeats(model, stimuli.fixed_period, bos, ["prefix_matching"], matching, {})
    repeats, random_period = _on_repeats(
        model, stimuli.random_period, bos, ["induction_copying_logit"], copying, CONTENT_ON_REPEATS
    )
    return Behaviour(
        text=text_losses(torch.cat([losses, next_token_losses(model, stimuli.more_text)]), stimuli.documents),
        repeats=repeats,
        layers=[
            _head_behaviour(*layer, stimuli.documents[: len(stimuli.text)])
            for layer in zip(on_text, prefix_matching, random_period, strict=True)
        ],
    )


@torch.inference_mode()
def random_period_scores(model: Transformer, stimuli: Stimuli) -> dict[Head, float]:
    """The induction_random_period of every head; NaN if nothing repeats."""
    _, layers = _on_repeats(
        model, stimuli.random_period, stimuli.bos, [], lambda trace, *_: [{} for _ in trace.layers], CONTENT_ON_REPEATS
    )
    return {
        Head(i, head): score
        for i, layer in enumerate(layers)
        for head, score in enumerate(layer["induction_random_period"].tolist())
    }


def _text_statistics(
    pattern: Float[Tensor, "batch head q_pos k_pos"], tokens: Int[Tensor, "batch pos"], bos: int, distances: range
) -> ByQuery:
    """Every statistic of a pattern on running text, by name; keys are visible at `distances`.

    Attention on keys is 0..1, distances are in positions. `without_bos`: BOS isn't a key, and rows are rescaled.
    """
    pattern = pattern.float()
    visible, content = (visible_keys(tokens, bos, with_bos=with_bos, distances=distances) for with_bos in (True, False))
    with_bos, without_bos = pattern_statistics(pattern, visible), pattern_statistics(pattern, content)
    return {
        "previous_token": attention_on(pattern, previous_token_keys(tokens, bos)),
        "bos_attention": attention_on(pattern, visible & ~content),
        **with_bos,
        **{f"{name}_without_bos": values for name, values in without_bos.items()},
    }


def _head_behaviour(
    on_text: _Layer, prefix_matching: ByHead, random_period: ByHead, documents: Int[Tensor, "batch"]
) -> ByHead:
    """Every score of a layer's heads; scores that decide roles have standard errors, over documents for text."""
    by_query = on_text.by_query
    scores = {name: values.double().nanmean(dim=(0, 2)) for name, values in by_query.items()}
    parts = parts_of_mean(by_query["previous_token"].double().transpose(0, 1))
    scores["previous_token_sem"] = sem_of_parts(parts, documents)
    for name, content in on_text.content.items():
        mean, parts = content.score()
        scores |= {name: mean, f"{name}_sem": sem_of_parts(parts, documents)}
    scores |= prefix_matching | random_period
    for bos in ("", "_without_bos"):
        offset, share = positional_offset(by_query[f"argmax_distance{bos}"])
        scores |= {f"positional_offset{bos}": offset, f"positional_share{bos}": share}
    return scores


def _logits_of_what_follows(
    model: Transformer, trace: Trace, tokens: Int[Tensor, "batch pos"], targets: Int[Tensor, "batch pos"], bos: int
) -> list[Float[Tensor, "batch head q_pos"]]:
    """Each head's direct contribution to the logit of the next token, at queries whose token occurred before."""
    occurred = induction_keys(tokens, bos).any(-1)[:, None]
    return [
        logits.float().where(occurred, torch.nan)
        for logits in freeze_trace(model, tokens, trace).direct_logits(targets)
    ]


def _on_repeats(
    model: Transformer,
    repeats: Repeats | None,
    bos: int,
    names: Sequence[str],
    statistics: Statistics,
    content: Mapping[str, KeysOf],
) -> tuple[Losses, list[ByHead]]:
    """Losses, and the mean of each of the named statistics and each score of content.

    Standard errors, `name`_sem, are over sequences, which are drawn independently.
    """
    if repeats is None:
        nothing = torch.empty(1, 0)
        columns = [f"{name}{suffix}" for name in (*names, *content) for suffix in ("", "_sem")]
        missing = [torch.full((n_heads,), torch.nan) for n_heads in model.architecture.heads_per_layer]
        return repeat_losses(nothing, nothing.long()), [dict.fromkeys(columns, own) for own in missing]
    losses, by_layer = _observe(model, repeats.tokens, bos, statistics, content)
    return repeat_losses(losses, repeats.occurrence[:, 1:]), list(map(_means_and_errors, by_layer))


def _means_and_errors(layer: _Layer) -> ByHead:
    by_head = {name: values.double().transpose(0, 1) for name, values in layer.by_query.items()}
    scores = {name: content.score() for name, content in layer.content.items()}
    parts = {name: parts_of_mean(own) for name, own in by_head.items()}
    parts |= {name: score.parts for name, score in scores.items()}
    means = {name: own.nanmean(dim=(1, 2)) for name, own in by_head.items()}
    means |= {name: score.mean for name, score in scores.items()}
    return means | {f"{name}_sem": sem_of_parts(own) for name, own in parts.items()}


def _observe(
    model: Transformer,
    sequences: Int[Tensor, "batch pos"],
    bos: int,
    statistics: Statistics,
    content: Mapping[str, KeysOf],
) -> tuple[Float[Tensor, "batch pos-1"], list[_Layer]]:
    """Losses, and what is seen of each layer's patterns; only one batch's patterns are held at a time."""
    losses, measured = [], []
    followed = [{name: ContentAttention() for name in content} for _ in model.layers]
    for batch in batches(model, sequences):
        tokens, targets = batch[:, :-1], batch[:, 1:]
        trace = model.trace(tokens)
        losses.append(token_losses(trace.logits, targets).cpu())
        measured.append(statistics(trace, tokens, targets))
        for name, keys_of in content.items():
            keys = keys_of(tokens, bos)
            for layer, own in zip(trace.layers, followed, strict=True):
                own[name].add(layer.pattern, keys)
    by_layer = map(_joined, zip(*measured, strict=True))
    return torch.cat(losses), [_Layer(*own) for own in zip(by_layer, followed, strict=True)]


def _joined(by_batch: Sequence[ByQuery]) -> ByQuery:
    """The statistics of a layer over all batches, on the CPU."""
    return {name: torch.cat([batch[name].cpu() for batch in by_batch]) for name in by_batch[0]}


def _open(layer: LayerTrace) -> Float[Tensor, "batch head pos"]:
    """1 at positions where a head's gate is open, 0 where it is closed, NaN without gates."""
    if layer.gates is None:
        return layer.z.new_full(layer.z.shape[:3], torch.nan)
    return (layer.gates > 0).to(layer.z.dtype)
