"""What the loss is without a head and without two of them: whether either does for both."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.heads.batches import batches
from models.heads.losses import token_losses
from models.transformer import Fill, Layer, Transformer

CHEAP = 0.01  # share of the intact loss
CLEAR = 2.0  # standard errors

Pair = tuple[int, int]  # two heads by their places among all, layer after layer, the first before the second


@dataclass(frozen=True)
class AblationLosses:
    """Mean loss of each sequence, nats a token."""

    intact: Float[Tensor, "batch"]
    alone: Float[Tensor, "head batch"]  # without one head
    both: Float[Tensor, "pair batch"]  # without the two heads of a pair


@dataclass(frozen=True)
class PairEffects:
    """By how much the loss rises without one head or two, and what that says of a pair."""

    alone_nats: Float[Tensor, "head"]
    both_nats: Float[Tensor, "pair"]
    excess_sem_nats: Float[Tensor, "pair"]  # standard error of both minus the sum; NaN for a single sequence
    redundant: list[bool | None]  # None for a single sequence


@dataclass(frozen=True)
class _Run:
    """A forward pass that can go on from any layer."""

    streams: list[Tensor]  # what each layer reads, and what the last one leaves
    z: list[Tensor]


def pair_effects(losses: AblationLosses, pairs: Sequence[Pair]) -> PairEffects:
    """A pair is redundant if either head costs under `CHEAP` of the loss, and both together clearly more than the sum.

    Clearly: by over `CLEAR` standard errors, paired over sequences. Without that, half of all pairs that have nothing
    to do with each other would count.
    """
    alone, both = losses.alone - losses.intact, losses.both - losses.intact
    first, second = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    cheap = alone.mean(1) < CHEAP * losses.intact.mean()
    excess, n = both - alone[first] - alone[second], both.shape[1]
    mean = excess.mean(1)
    sem = ((excess - mean[:, None]).square().sum(1) / (n * (n - 1))).sqrt()  # 0 / 0 for a single sequence
    redundant = cheap[first] & cheap[second] & (mean > CLEAR * sem)
    return PairEffects(alone.mean(1), both.mean(1), sem, redundant.tolist() if n > 1 else [None] * len(pairs))


@torch.inference_mode()
def ablation_losses(
    model: Transformer, sequences: Int[Tensor, "batch pos"], fill: Fill, pairs: Sequence[Pair]
) -> AblationLosses:
    """Losses where `fill` takes the place of z of each head alone, and of both heads of each pair.

    A pair goes on from the run without its first head, so that only what follows its second head is run again.
    """
    places = [(layer, head) for layer, n in enumerate(model.architecture.heads_per_layer) for head in range(n)]
    parts = []
    for batch in batches(model, sequences):
        tokens, targets = batch[:, :-1], batch[:, 1:]
        intact = _run_on(model, [model.embed(tokens)], [])
        alone, both = (torch.empty(n, len(batch), dtype=torch.float64) for n in (len(places), len(pairs)))
        for head, place in enumerate(places):
            run = _without(model, intact, place, fill)
            alone[head] = _losses(model, run, targets)
            for i, (first, second) in enumerate(pairs):
                if first == head:
                    both[i] = _losses(model, _without(model, run, places[second], fill), targets)
        parts.append((_losses(model, intact, targets), alone, both))
    return AblationLosses(*(torch.cat(part, dim=-1) for part in zip(*parts, strict=True)))


def _without(model: Transformer, run: _Run, place: tuple[int, int], fill: Fill) -> _Run:
    layer, head = place
    z = run.z[layer].clone()
    z[:, head] = fill[layer][head]
    return _run_on(model, run.streams[: layer + 1], [*run.z[:layer], z])


def _run_on(model: Transformer, streams: list[Tensor], z: list[Tensor]) -> _Run:
    """The rest of a run of which the stream is known up to some layer, and z perhaps of that layer too."""
    streams, z = [*streams], [*z]
    for i in range(len(streams) - 1, len(model.layers)):
        layer = model.layers[i]
        assert isinstance(layer, Layer)
        if len(z) == i:
            z.append(layer.attention.mix_fused(layer.read(streams[i])))
        streams.append(layer.write(streams[i], z[i])[-1])
    return _Run(streams, z)


def _losses(model: Transformer, run: _Run, targets: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch"]:
    return token_losses(model.finish(run.streams[-1], len(model.layers)), targets).double().mean(1).cpu()
