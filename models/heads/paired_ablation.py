"""The loss without one head and without two, which shows if either can stand in for the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from scipy.special import stdtr
from torch import Tensor

from headstream.models.clustered_errors import clustered_mean
from headstream.models.heads.head import HeadSet
from headstream.models.heads.pruned_losses import losses_without
from headstream.models.multiple_tests import holm_adjusted
from headstream.models.nodes import Head
from headstream.models.transformer import Fill, Transformer

CHEAP_SHARE = 0.01  # of the intact loss: either head must cost less
EXCESS_SHARE = 0.005  # of the intact loss: both must cost at least this much more than the sum
REDUNDANCY_LEVEL = 0.05  # probability of a false positive among pairs of which none is redundant

Pair = tuple[int, int]  # two heads by their places in a list, the first before the second


@dataclass(frozen=True)
class PairEffects:
    """The rise of the loss without one head or two, and the redundancy of pairs."""

    alone_nats: Float[Tensor, "head"]
    both_nats: Float[Tensor, "pair"]
    excess_nats: Float[Tensor, "pair"]  # of both over the sum
    excess_sem_nats: Float[Tensor, "pair"]  # its standard error; NaN if it can't be estimated
    excess_chance: Float[Tensor, "pair"]  # p-value of an excess over `EXCESS_SHARE` of the loss; adjusted for all pairs
    redundant: list[bool | None]  # None without a standard error


def pair_effects(
    intact: Float[Tensor, "batch"],
    alone: Float[Tensor, "head batch"],
    both: Float[Tensor, "pair batch"],
    pairs: Sequence[Pair],
    documents: Int[Tensor, "batch"],
) -> PairEffects:
    """The effects of pairs, from the losses of sequences and the document of each.

    Redundant: losing either costs under `CHEAP_SHARE` of the loss; losing both costs something, and exceeds the sum by
    `EXCESS_SHARE` of the loss or more; and each is needed once the other is lost, so that one stands in for the other.
    All that at `REDUNDANCY_LEVEL` by Holm's rule. A minimum size is needed, since any two heads of a layer interact
    a little, and with enough text the smallest excess is significant. Heads in series, of which one has an effect only
    through the other, aren't redundant: once the one is lost, the other isn't needed. Of three copies of a head every
    pair is redundant if losing two hurts, and none if the third is enough.
    """
    alone, both = alone - intact, both - intact
    first, second = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    excess = both - alone[first] - alone[second]
    found = clustered_mean(excess, documents)
    above = _chance(excess - EXCESS_SHARE * intact, documents)
    needed = [_chance(rise, documents) for rise in (both, both - alone[first], both - alone[second])]
    chance = holm_adjusted(torch.stack([above, *needed]).amax(0))
    cheap = alone.mean(1) < CHEAP_SHARE * intact.mean()
    redundant = (cheap[first] & cheap[second] & (chance <= REDUNDANCY_LEVEL)).tolist()
    known = chance.isfinite().tolist()
    return PairEffects(
        alone.mean(1),
        both.mean(1),
        found.mean,
        found.sem,
        holm_adjusted(above),
        [own if is_known else None for own, is_known in zip(redundant, known, strict=True)],
    )


def _chance(values: Float[Tensor, "pair batch"], documents: Int[Tensor, "batch"]) -> Float[Tensor, "pair"]:
    """One-sided p-value of each mean above 0, by Student's t over documents; NaN without a standard error."""
    found = clustered_mean(values, documents)
    t = (found.mean / found.sem).masked_fill((found.sem == 0) & (found.mean <= 0), -torch.inf)
    return torch.from_numpy(stdtr(found.degrees_of_freedom, -t.numpy()))


def ablation_losses(
    model: Transformer, sequences: Int[Tensor, "batch pos"], fill: Fill, heads: Sequence[Head], pairs: Sequence[Pair]
) -> tuple[Float[Tensor, "batch"], Float[Tensor, "head batch"], Float[Tensor, "pair batch"]]:
    """Mean loss of each sequence, intact and with `fill` for z of each single head and of both heads of each pair."""
    alone = [frozenset([head]) for head in heads]
    both = [frozenset([heads[first], heads[second]]) for first, second in pairs]
    intact: HeadSet = frozenset()
    found = losses_without(model, sequences, fill, [intact, *alone, *both])

    def stacked(sets: Sequence[HeadSet]) -> Float[Tensor, "set batch"]:
        return torch.stack([found[heads] for heads in sets]) if sets else found[intact].new_empty(0, len(sequences))

    return found[intact], stacked(alone), stacked(both)
