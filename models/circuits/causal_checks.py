"""The effect on a head of taking one or several earlier heads out of its queries, its keys or its values alone.

Everything else that the head reads keeps its true value, norm scales included, and so do its gates; what comes after is
computed anew.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from itertools import groupby
from math import nan

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.ablated_runs import ROWS, IntactRun
from headstream.models.batching import at_once, batches
from headstream.models.circuits.induction_without import Induction, induction_without
from headstream.models.circuits.removals import Removal, Variant, entered, variants, writers_of
from headstream.models.frozen import freeze_run, freeze_trace
from headstream.models.heads.attended_keys import attention_on, induction_keys
from headstream.models.nodes import Head
from headstream.models.repeats import Repeats
from headstream.models.stimuli import Stimuli
from headstream.models.transformer import LayerTrace, Transformer


@dataclass(frozen=True)
class CausalCheck:
    """A reading head without its writers in its queries, keys or values; NaN where nothing repeats.

    Of each measure comes first what it is with nothing taken out.
    """

    removal: Removal
    prefix_matching: float
    prefix_matching_without: float
    induction_random_period: float
    induction_random_period_without: float
    induction_copying_logit: float
    induction_copying_logit_without: float
    pattern_change: float  # on text: how much of a query's attention moves, 0..1
    loss_effect_nats: float  # by how much the loss on text rises


@torch.inference_mode()
def causal_checks(model: Transformer, stimuli: Stimuli, removals: Collection[Removal]) -> list[CausalCheck]:
    """Compute the loss of each removal's reader.

    Raises:
        ValueError: the edges of a removal don't all enter one port of a head.
    """
    removals = sorted(set(removals), key=lambda removal: (writers_of(removal), *entered(removal)))
    loss, change = _effects_on_text(model, stimuli.text, removals)
    prefix_matching = _prefix_matching(model, stimuli.fixed_period, stimuli.bos, removals)
    found: dict[Head | Removal, Induction] = {}
    if stimuli.random_period is not None:
        found = induction_without(model, stimuli.random_period, stimuli.bos, removals)

    def attention(key: Head | Removal) -> float:
        return found[key].attention.mean.item() if found else nan

    def logit(key: Head | Removal) -> float:
        return found[key].copying.mean.item() if found else nan

    return [
        CausalCheck(
            removal,
            prefix_matching=prefix_matching[reader],
            prefix_matching_without=prefix_matching[removal],
            induction_random_period=attention(reader),
            induction_random_period_without=attention(removal),
            induction_copying_logit=logit(reader),
            induction_copying_logit_without=logit(removal),
            pattern_change=change[removal],
            loss_effect_nats=effect,
        )
        for removal, effect in loss.items()
        for reader in [entered(removal)[0]]
    ]


def _effects_on_text(
    model: Transformer, sequences: Int[Tensor, "batch pos"], removals: Collection[Removal]
) -> tuple[dict[Removal, float], dict[Removal, float]]:
    """Rise of the loss per prediction, and change of the pattern per query, for each removal."""
    loss: dict[Removal, float] = defaultdict(float)
    change: dict[Removal, float] = defaultdict(float)
    n = sequences[:, 1:].numel()
    for batch in batches(model, sequences):
        intact = IntactRun(model, batch)
        run = freeze_trace(model, batch[:, :-1], intact.trace)
        for i, of_layer in groupby(variants(run, removals), key=lambda variant: variant.layer):
            written: dict[Removal, Tensor] = {}
            for variant in of_layer:
                moved = (variant.pattern - intact.trace.layers[i].pattern).abs().sum((0, 2, 3)) / 2
                for reader, removal in variant.removals.items():
                    change[removal] += moved[reader.head].item() / n
                    written[removal] = _change_of_writing(intact.trace.layers[i], variant, reader.head)
            changes, size = list(written.items()), max(1, at_once(ROWS, batch) // batch.numel())
            for some in (changes[at : at + size] for at in range(0, len(changes), size)):
                effects, _ = intact.effects_of(i, torch.stack([of_removal for _, of_removal in some]))
                for (removal, _), effect in zip(some, effects.sum(1).tolist(), strict=True):
                    loss[removal] += effect / len(sequences)
    return loss, change


def _change_of_writing(traced: LayerTrace, variant: Variant, head: int) -> Float[Tensor, "batch pos d_model"]:
    """The difference between a head's output in a variant and its true output."""
    z = variant.pattern[:, head] @ variant.values[:, head]
    if traced.gates is not None:
        z = z * traced.gates[:, head, :, None]
    return (z - traced.z[:, head]) @ traced.W_O[head]


def _prefix_matching(
    model: Transformer, repeats: Repeats | None, bos: int, removals: Collection[Removal]
) -> dict[Head | Removal, float]:
    """Attention on what followed earlier copies, at a fixed period: of each reader as it is, and of each removal."""
    if repeats is None:
        return defaultdict(lambda: torch.nan)
    sums: dict[Head | Removal, Tensor] = defaultdict(lambda: torch.zeros(2, dtype=torch.float64))

    def add(key: Head | Removal, attention: Float[Tensor, "batch q_pos"]) -> None:
        sums[key] += torch.stack([attention.double().nansum(), attention.isfinite().sum()]).cpu()

    for batch in batches(model, repeats.tokens):
        run, keys = freeze_run(model, batch[:, :-1]), induction_keys(batch[:, :-1], bos)
        intact = [attention_on(layer.trace.pattern, keys) for layer in run.layers]
        for reader in {entered(removal)[0] for removal in removals}:
            add(reader, intact[reader.layer][:, reader.head])
        for variant in variants(run, removals):
            attention = intact[variant.layer] if variant.port == "V" else attention_on(variant.pattern, keys)
            for reader, removal in variant.removals.items():
                add(removal, attention[:, reader.head])
    return {key: (total / n).item() for key, (total, n) in sums.items()}
