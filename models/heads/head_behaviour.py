"""What a model and each of its heads do on sequences: one number a quantity, NaN where it has none.

A sequence opens with BOS, and its last token is only predicted, never read.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.batching import batches
from models.clustered_errors import clustered_mean
from models.heads.attended_keys import attention_on, duplicate_token_keys, induction_keys, previous_token_keys
from models.heads.patterns import pattern_statistics, positional_offset, visible_keys
from models.losses import (
    Losses,
    next_token_losses,
    parts_of_mean,
    repeat_losses,
    sem_of_parts,
    text_losses,
    token_losses,
)
from models.repeats import Repeats
from models.stimuli import Stimuli
from models.transformer import LayerTrace, Transformer

ByQuery = dict[str, Float[Tensor, "batch head q_pos"]]
ByHead = dict[str, Float[Tensor, "_"]]


@dataclass(frozen=True)
class Behaviour:
    """What a model and its heads do on some stimuli."""

    text: Losses
    repeats: Losses
    layers: list[ByHead]  # means over the queries that count


@torch.inference_mode()
def model_behaviour(model: Transformer, stimuli: Stimuli) -> Behaviour:
    """Measure a model's losses and the behaviour of its heads."""
    bos, distances = stimuli.bos, model.architecture.visible_distances
    losses, on_text = _observe(
        model,
        stimuli.text,
        lambda layer, tokens: (
            _text_statistics(layer.pattern, tokens, bos, distances) | {"active_fraction": _open(layer)}
        ),
    )
    _, prefix_matching = _on_repeats(model, stimuli.fixed_period, bos, "prefix_matching")
    repeats, random_period = _on_repeats(model, stimuli.random_period, bos, "induction_random_period")
    return Behaviour(
        text=text_losses(torch.cat([losses, next_token_losses(model, stimuli.more_text)]), stimuli.documents),
        repeats=repeats,
        layers=[
            _head_behaviour(*layer, stimuli.documents[: len(stimuli.text)])
            for layer in zip(on_text, prefix_matching, random_period, strict=True)
        ],
    )


def _text_statistics(
    pattern: Float[Tensor, "batch head q_pos k_pos"], tokens: Int[Tensor, "batch pos"], bos: int, distances: range
) -> ByQuery:
    """Every statistic of a pattern on running text, by name; keys are visible at `distances`.

    Attention on keys is 0..1, distances are in positions. `without_bos`: BOS is no key and rows are rescaled.
    """
    pattern = pattern.float()
    visible, content = (visible_keys(tokens, bos, with_bos=with_bos, distances=distances) for with_bos in (True, False))
    with_bos, without_bos = pattern_statistics(pattern, visible), pattern_statistics(pattern, content)
    return {
        "previous_token": attention_on(pattern, previous_token_keys(tokens, bos)),
        "duplicate_token": attention_on(pattern, duplicate_token_keys(tokens, bos)),
        "induction_natural": attention_on(pattern, induction_keys(tokens, bos)),
        "bos_attention": attention_on(pattern, visible & ~content),
        **with_bos,
        **{f"{name}_without_bos": values for name, values in without_bos.items()},
    }


def _head_behaviour(
    on_text: ByQuery, prefix_matching: ByHead, random_period: ByHead, documents: Int[Tensor, "batch"]
) -> ByHead:
    """Every score of a layer's heads; of those that give roles standard errors, over documents where text is read."""
    scores = {name: values.double().nanmean(dim=(0, 2)) for name, values in on_text.items()}
    for name in ("previous_token", "duplicate_token"):
        parts = parts_of_mean(on_text[name].double().transpose(0, 1))
        scores[f"{name}_sem"] = clustered_mean(parts * len(documents), documents).sem
    scores |= prefix_matching | random_period
    for bos in ("", "_without_bos"):
        offset, share = positional_offset(on_text[f"argmax_distance{bos}"])
        scores |= {f"positional_offset{bos}": offset, f"positional_share{bos}": share}
    return scores


def _on_repeats(model: Transformer, repeats: Repeats | None, bos: int, name: str) -> tuple[Losses, list[ByHead]]:
    """Losses, and by that name each head's attention on what followed earlier occurrences of the query's token.

    Its standard error, `name`_sem, is over sequences, which are drawn independently.
    """
    if repeats is None:
        nothing = torch.empty(1, 0)
        missing = [torch.full((n_heads,), torch.nan) for n_heads in model.architecture.heads_per_layer]
        return repeat_losses(nothing, nothing.long()), [{name: own, f"{name}_sem": own} for own in missing]

    def induction(layer: LayerTrace, tokens: Tensor) -> ByQuery:
        return {"induction": attention_on(layer.pattern.float(), induction_keys(tokens, bos))}

    losses, by_layer = _observe(model, repeats.tokens, induction)
    by_head = [layer["induction"].double().transpose(0, 1) for layer in by_layer]
    scores = [{name: own.nanmean(dim=(1, 2)), f"{name}_sem": sem_of_parts(parts_of_mean(own))} for own in by_head]
    return repeat_losses(losses, repeats.occurrence[:, 1:]), scores


def _observe(
    model: Transformer, sequences: Int[Tensor, "batch pos"], statistics: Callable[[LayerTrace, Tensor], ByQuery]
) -> tuple[Float[Tensor, "batch pos-1"], list[ByQuery]]:
    """Losses, and statistics of each layer's patterns; no more than a batch's patterns are held at once."""
    losses, measured = [], []
    for batch in batches(model, sequences):
        tokens, targets = batch[:, :-1], batch[:, 1:]
        trace = model.trace(tokens)
        losses.append(token_losses(trace.logits, targets).cpu())
        measured.append([statistics(layer, tokens) for layer in trace.layers])
    by_layer = [
        {name: torch.cat([batch[name].cpu() for batch in layer]) for name in layer[0]}
        for layer in zip(*measured, strict=True)
    ]
    return torch.cat(losses), by_layer


def _open(layer: LayerTrace) -> Float[Tensor, "batch head pos"]:
    """1 at the positions where a head's gate is open, 0 where it is closed, NaN without gates."""
    if layer.gates is None:
        return layer.z.new_full(layer.z.shape[:3], torch.nan)
    return (layer.gates > 0).to(layer.z.dtype)
