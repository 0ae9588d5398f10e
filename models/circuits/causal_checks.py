"""The effect on a head of taking one or several earlier heads out of its queries, its keys or its values alone.

Everything else that the head reads keeps its true value, norm scales included, and so do its gates; what comes after is
computed anew.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.ablated_runs import ROWS, IntactRun
from headstream.models.batching import at_once, batches
from headstream.models.circuits.paths import HeadPath
from headstream.models.frozen import FrozenLayer, FrozenRun, freeze_run, freeze_trace
from headstream.models.heads.attended_keys import attention_on, induction_keys
from headstream.models.nodes import HEAD_PORTS, Edge, Head, Node, Port
from headstream.models.repeats import Repeats
from headstream.models.stimuli import Stimuli
from headstream.models.transformer import LayerTrace, Transformer

Removal = tuple[Edge, ...]  # from earlier heads into one port of a later one, taken out together


@dataclass(frozen=True)
class CausalCheck:
    """A reading head without its writers in its queries, keys or values; NaN where nothing repeats."""

    removal: Removal
    prefix_matching: float  # with nothing taken out
    prefix_matching_without: float
    induction_random_period: float  # with nothing taken out
    induction_random_period_without: float
    pattern_change: float  # on text: how much of a query's attention moves, 0..1
    loss_effect_nats: float  # by how much the loss on text rises


@dataclass(frozen=True)
class _Variant:
    """All heads of a layer without some writers in their queries, keys or values, and the removals that it answers."""

    layer: int
    removals: dict[Head, Removal]  # by reader
    port: Port
    pattern: Float[Tensor, "batch head q_pos k_pos"]
    values: Float[Tensor, "batch head pos d_value"]


@torch.inference_mode()
def causal_checks(model: Transformer, stimuli: Stimuli, removals: Collection[Removal]) -> list[CausalCheck]:
    """Compute the loss of each removal's reader.

    Raises:
        ValueError: the edges of a removal don't all enter one port of a head.
    """
    removals = sorted(set(removals), key=lambda removal: (_writers(removal), *_entered(removal)))
    loss, change = _effects_on_text(model, stimuli.text, removals)
    prefix_matching = _induction_scores(model, stimuli.fixed_period, stimuli.bos, removals)
    random_period = _induction_scores(model, stimuli.random_period, stimuli.bos, removals)
    return [
        CausalCheck(
            removal,
            prefix_matching=prefix_matching[_entered(removal)[0]],
            prefix_matching_without=prefix_matching[removal],
            induction_random_period=random_period[_entered(removal)[0]],
            induction_random_period_without=random_period[removal],
            pattern_change=change[removal],
            loss_effect_nats=effect,
        )
        for removal, effect in loss.items()
    ]


def edges_of(pairs: Iterable[HeadPath]) -> list[Edge]:
    """The edges of pairs of an earlier and a later head: to queries, to keys and to values."""
    return [Edge(writer, reader, port) for writer, reader in pairs for port in HEAD_PORTS]


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
        for i, variants in groupby(_variants(run, removals), key=lambda variant: variant.layer):
            written: dict[Removal, Tensor] = {}
            for variant in variants:
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


def _change_of_writing(traced: LayerTrace, variant: _Variant, head: int) -> Float[Tensor, "batch pos d_model"]:
    """The difference between a head's output in a variant and its true output."""
    z = variant.pattern[:, head] @ variant.values[:, head]
    if traced.gates is not None:
        z = z * traced.gates[:, head, :, None]
    return (z - traced.z[:, head]) @ traced.W_O[head]


def _induction_scores(
    model: Transformer, repeats: Repeats | None, bos: int, removals: Collection[Removal]
) -> dict[Head | Removal, float]:
    """Attention on what followed earlier occurrences: of each reader as it is, and of each removal."""
    if repeats is None:
        return defaultdict(lambda: torch.nan)
    sums: dict[Head | Removal, Tensor] = defaultdict(lambda: torch.zeros(2, dtype=torch.float64))

    def add(key: Head | Removal, attention: Float[Tensor, "batch q_pos"]) -> None:
        sums[key] += torch.stack([attention.double().nansum(), attention.isfinite().sum()]).cpu()

    for batch in batches(model, repeats.tokens):
        run, keys = freeze_run(model, batch[:, :-1]), induction_keys(batch[:, :-1], bos)
        intact = [attention_on(layer.trace.pattern, keys) for layer in run.layers]
        for reader in {_entered(removal)[0] for removal in removals}:
            add(reader, intact[reader.layer][:, reader.head])
        for variant in _variants(run, removals):
            attention = intact[variant.layer] if variant.port == "V" else attention_on(variant.pattern, keys)
            for reader, removal in variant.removals.items():
                add(removal, attention[:, reader.head])
    return {key: (total / n).item() for key, (total, n) in sums.items()}


def _variants(run: FrozenRun, removals: Collection[Removal]) -> Iterator[_Variant]:
    """The variants to compute, one for all removals of a layer that differ in the reader alone."""
    for i, (layer, sources) in enumerate(zip(run.layers, run.sources(), strict=False)):
        groups: dict[tuple[tuple[Node, ...], Port], dict[Head, Removal]] = defaultdict(dict)
        for removal in removals:
            reader, port = _entered(removal)
            if reader.layer == i:
                groups[_writers(removal), port][reader] = removal
        q, k, v = layer.attention.queries_keys_values(layer.read)
        for (writers, port), own in groups.items():
            part = torch.stack([sources[writer] for writer in writers]).sum(0)
            if port == "Q":
                yield _Variant(i, own, port, _pattern(layer, q - layer.queries(part), k), v)
            elif port == "K":
                yield _Variant(i, own, port, _pattern(layer, q, k - layer.keys(part)), v)
            else:
                yield _Variant(i, own, port, layer.trace.pattern, v - layer.values(part))


def _writers(removal: Removal) -> tuple[Node, ...]:
    return tuple(edge.writer for edge in removal)


def _entered(removal: Removal) -> tuple[Head, Port]:
    """The head that all edges of a removal enter, and by which port."""
    reader, port = removal[0].reader, removal[0].port
    is_one = all((edge.reader, edge.port) == (reader, port) for edge in removal)
    if not (is_one and isinstance(reader, Head) and port in HEAD_PORTS):
        raise ValueError(f"the edges of a removal must all enter one port of a head, got {removal}")
    return reader, port


def _pattern(
    layer: FrozenLayer, q: Float[Tensor, "batch head pos d_head"], k: Float[Tensor, "batch head pos d_head"]
) -> Float[Tensor, "batch head q_pos k_pos"]:
    return layer.attention.pattern(q * layer.attention.d_head**-0.5 @ k.mT)
