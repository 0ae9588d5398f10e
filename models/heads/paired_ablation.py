"""What the loss is without one head and without two: whether either can stand in for the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.heads.head import HeadSet, heads_of
from models.heads.pruned_losses import losses_without
from models.transformer import Fill, Transformer

CHEAP_SHARE = 0.01  # share of the intact loss
CLEAR_STANDARD_ERRORS = 2.0

Pair = tuple[int, int]  # two heads by their places among all, layer after layer, the first before the second


@dataclass(frozen=True)
class PairEffects:
    """By how much the loss rises without one head or two, and what that says of a pair."""

    alone_nats: Float[Tensor, "head"]
    both_nats: Float[Tensor, "pair"]
    excess_sem_nats: Float[Tensor, "pair"]  # standard error of both minus the sum; NaN for a single sequence
    redundant: list[bool | None]  # None for a single sequence


def pair_effects(
    intact: Float[Tensor, "batch"],
    alone: Float[Tensor, "head batch"],
    both: Float[Tensor, "pair batch"],
    pairs: Sequence[Pair],
) -> PairEffects:
    """What such losses say of pairs: redundant where either head is cheap, but both cost clearly more than their sum.

    Cheap: under `CHEAP_SHARE` of the loss. Clearly: by over `CLEAR_STANDARD_ERRORS`, paired over sequences; without
    that, half of all pairs that have nothing to do with each other would count.
    """
    cheap_nats, alone, both = CHEAP_SHARE * intact.mean(), alone - intact, both - intact
    first, second = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    cheap = alone.mean(1) < cheap_nats
    excess, n = both - alone[first] - alone[second], both.shape[1]
    mean = excess.mean(1)
    sem = ((excess - mean[:, None]).square().sum(1) / (n * (n - 1))).sqrt()  # 0 / 0 for a single sequence
    redundant = cheap[first] & cheap[second] & (mean > CLEAR_STANDARD_ERRORS * sem)
    return PairEffects(alone.mean(1), both.mean(1), sem, redundant.tolist() if n > 1 else [None] * len(pairs))


def ablation_losses(
    model: Transformer, sequences: Int[Tensor, "batch pos"], fill: Fill, pairs: Sequence[Pair]
) -> tuple[Float[Tensor, "batch"], Float[Tensor, "head batch"], Float[Tensor, "pair batch"]]:
    """Mean loss of each sequence, intact and with `fill` for z of each head alone and of both heads of each pair."""
    heads = heads_of(model)
    alone = [frozenset([head]) for head in heads]
    both = [frozenset([heads[first], heads[second]]) for first, second in pairs]
    intact: HeadSet = frozenset()
    found = losses_without(model, sequences, fill, [intact, *alone, *both])

    def stacked(sets: Sequence[HeadSet]) -> Float[Tensor, "set batch"]:
        return torch.stack([found[heads] for heads in sets]) if sets else found[intact].new_empty(0, len(sequences))

    return found[intact], stacked(alone), stacked(both)
