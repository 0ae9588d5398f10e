"""Effects of ablating feed-forward layers, or groups of their neurons, measured as for heads.

Activations, between W_in and W_out, are ablated; the output bias stays. Later layers see the difference.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.ablated_runs import ROWS, IntactRun
from headstream.models.batching import at_once, batches
from headstream.models.losses import token_losses
from headstream.models.transformer import Layer, LayerTrace, Transformer

NeuronFill = Sequence[Float[Tensor, "_"]]  # replaces activations: one [neuron] tensor per layer


@dataclass(frozen=True)
class NeuronAblation:
    """The effects of ablating some neurons of a layer."""

    layer: int
    part: str  # all, or a group like `group 3`
    neurons: slice
    method: str
    loss_effects_nats: Float[Tensor, "sequence"]  # loss when ablated minus loss of the intact model
    kl_nats: Float[Tensor, "sequence"]  # KL(intact || ablated), nats per token


def neuron_parts(n_neurons: int, n_groups: int) -> dict[str, slice]:
    """All neurons of a layer, and at most `n_groups` groups of adjacent ones, as equal as possible.

    >>> neuron_parts(7, 2)
    {'all': slice(0, 7, None), 'group 0': slice(0, 4, None), 'group 1': slice(4, 7, None)}
    """
    parts, start = {"all": slice(0, n_neurons)}, 0
    for i, group in enumerate(torch.arange(n_neurons).tensor_split(min(n_groups, n_neurons))):
        parts[f"group {i}"] = slice(start, start + len(group))
        start += len(group)
    return parts


@torch.inference_mode()
def mean_activations(model: Transformer, sequences: Int[Tensor, "batch pos"]) -> NeuronFill:
    """Each neuron's mean activation over sequences and positions; the last token is only predicted, not read."""
    sums = [model.W_E.new_zeros(model.architecture.mlp_width, dtype=torch.float64) for _ in model.layers]
    for batch in batches(model, sequences):
        for total, (layer, trace) in zip(sums, _layer_traces(model, batch[:, :-1]), strict=True):
            total += activations(layer, trace).double().sum((0, 1))
    n_tokens = len(sequences) * (sequences.shape[1] - 1)
    return [(total / n_tokens).to(model.W_E.dtype) for total in sums]


@torch.inference_mode()
def neuron_ablations(
    model: Transformer, sequences: Int[Tensor, "batch pos"], fills: Mapping[str, NeuronFill], n_groups: int
) -> list[NeuronAblation]:
    """The effects of ablating each feed-forward layer and each group of its neurons; `fills` is by method."""
    parts = neuron_parts(model.architecture.mlp_width, n_groups)
    cases = list(product(fills, parts))
    effects: dict[tuple[int, str, str], list[Tensor]] = defaultdict(list)
    for batch in batches(model, sequences):
        run, size = IntactRun(model, batch), max(1, at_once(ROWS, batch) // batch.numel())
        for i, (layer, trace) in enumerate(zip(model.layers, run.trace.layers, strict=True)):
            hidden = activations(layer, trace)
            for some in (cases[at : at + size] for at in range(0, len(cases), size)):
                x = [residual_without(layer, trace, hidden, parts[part], fills[method][i]) for method, part in some]
                found = run.effects_from(i + 1, torch.stack(x))
                for (method, part), of_case in zip(some, found.unbind(1), strict=True):
                    effects[i, part, method].append(of_case)
    return [
        NeuronAblation(i, part, parts[part], method, *torch.cat(by_batch, dim=1))
        for (i, part, method), by_batch in effects.items()
    ]


@torch.inference_mode()
def losses_without_feed_forward(
    model: Transformer, sequences: Int[Tensor, "batch pos"], fill: NeuronFill
) -> Float[Tensor, "batch"]:
    """Mean loss of each sequence with every neuron of every layer replaced, in float64 on the CPU."""
    losses = []
    for batch in batches(model, sequences):
        x = model.embed(batch[:, :-1])
        for layer, own_fill in zip(model.layers, fill, strict=True):
            trace = layer.trace(x)
            x = residual_without(layer, trace, activations(layer, trace), slice(None), own_fill)
        logits = model.forward_from(x, len(model.layers))
        losses.append(token_losses(logits, batch[:, 1:]).double().mean(1).cpu())
    return torch.cat(losses)


def activations(layer: Layer, trace: LayerTrace) -> Float[Tensor, "batch pos neuron"]:
    """The activations of a layer's neurons, which W_out reads."""
    assert layer.feed_forward is not None
    mid = layer.residual_mid(trace.residual_in, trace.attention_out)
    return layer.feed_forward.hidden(layer.read_mid(trace.residual_in, mid))


def residual_without(
    layer: Layer,
    trace: LayerTrace,
    hidden: Float[Tensor, "batch pos neuron"],
    neurons: slice,
    fill: Float[Tensor, "neuron"],
) -> Float[Tensor, "batch pos d_model"]:
    """The stream after a layer with some neurons' activations replaced."""
    assert layer.feed_forward is not None
    assert trace.feed_forward_out is not None
    missing = (hidden[:, :, neurons] - fill[neurons]) @ layer.feed_forward.W_out[neurons]
    mid = layer.residual_mid(trace.residual_in, trace.attention_out)
    return layer.residual_after(mid, trace.feed_forward_out - missing)


def _layer_traces(model: Transformer, tokens: Int[Tensor, "batch pos"]) -> Iterator[tuple[Layer, LayerTrace]]:
    """Each layer with its trace, one held at a time."""
    x = model.embed(tokens)
    for layer in model.layers:
        trace = layer.trace(x)
        x = trace.residual_out
        yield layer, trace
