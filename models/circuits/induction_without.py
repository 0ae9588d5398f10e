"""The induction of heads on repeats, whole and without earlier heads in their queries, keys or values.

Two things make a head an induction head: it attends to what followed earlier copies of the current token, and it raises
the logit of that. Both are measured on the same sequences with and without a removal, so that they can be compared
sequence by sequence.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstream.models.batching import batches
from headstream.models.circuits.removals import Removal, entered, variants
from headstream.models.frozen import freeze_run
from headstream.models.heads.attended_keys import induction_keys
from headstream.models.heads.content_attention import ContentAttention, Score
from headstream.models.losses import parts_of_mean
from headstream.models.nodes import Head
from headstream.models.repeats import Repeats
from headstream.models.transformer import Transformer

NO_SCORE = Score(torch.full((1,), torch.nan), torch.empty(1, 0))
PATTERN_NUMBERS = 2**27  # attention weights of all removals held at once, added up over sequences


class Induction(NamedTuple):
    """One head on repeats with random periods: each score has one entry."""

    attention: Score  # on what followed earlier copies, beyond what place earns: induction_random_period
    copying: Score  # what the head itself adds to the logit of what follows: induction_copying_logit


@dataclass
class SeenOnRepeats:
    """What was seen so far of one head on repeats."""

    attention: ContentAttention = field(default_factory=ContentAttention)
    logits: list[Tensor] = field(default_factory=list)

    def add(
        self,
        pattern: Float[Tensor, "batch q_pos k_pos"] | None,
        keys: Bool[Tensor, "batch q_pos k_pos"],
        logits: Float[Tensor, "batch pos"],
    ) -> None:
        """Count more sequences: the pattern, the keys that follow earlier copies, and what the head adds to logits."""
        if pattern is not None:
            self.attention.add(pattern[:, None], keys)
        self.logits.append(logits.double().where(keys.any(-1), torch.nan).cpu())

    def induction(self) -> Induction:
        """The scores of all sequences."""
        logits = torch.cat(self.logits)[None]
        attention = self.attention.score() if self.attention.has_any else NO_SCORE
        return Induction(attention, Score(logits.nanmean(dim=(1, 2)), parts_of_mean(logits)))


@torch.inference_mode()
def induction_without(
    model: Transformer, repeats: Repeats, bos: int, removals: Collection[Removal]
) -> dict[Head | Removal, Induction]:
    """Compute the induction of each removal's reader as it is, and without what is removed."""
    found: dict[Head | Removal, Induction] = {}
    for some in _that_fit(sorted(set(removals)), repeats.tokens.shape[1]):
        seen: dict[Head | Removal, SeenOnRepeats] = defaultdict(SeenOnRepeats)
        for batch in batches(model, repeats.tokens):
            _add_batch(seen, model, batch, bos, some)
        found |= {key: own.induction() for key, own in seen.items()}
    for removal in removals:
        reader, port = entered(removal)
        if port == "V":  # which changes no pattern
            found[removal] = Induction(found[reader].attention, found[removal].copying)
    return found


def _that_fit(removals: Sequence[Removal], n_tokens: int) -> Iterator[Sequence[Removal]]:
    size = max(1, PATTERN_NUMBERS // n_tokens**2)
    return (removals[at : at + size] for at in range(0, len(removals), size))


def _add_batch(
    seen: dict[Head | Removal, SeenOnRepeats],
    model: Transformer,
    batch: Tensor,
    bos: int,
    removals: Collection[Removal],
) -> None:
    tokens, targets = batch[:, :-1], batch[:, 1:]
    run, keys = freeze_run(model, tokens), induction_keys(tokens, bos)
    reads = run.reads_of_z(targets)
    for reader in {entered(removal)[0] for removal in removals}:
        traced, (layer, head) = run.layers[reader.layer].trace, reader
        seen[reader].add(traced.pattern[:, head], keys, (traced.z[:, head] * reads[layer][:, head]).sum(-1))
    for variant in variants(run, removals):
        gates = run.layers[variant.layer].trace.gates
        for reader, removal in variant.removals.items():
            pattern = variant.pattern[:, reader.head]
            z = pattern @ variant.values[:, reader.head]
            if gates is not None:
                z = z * gates[:, reader.head, :, None]
            logits = (z * reads[variant.layer][:, reader.head]).sum(-1)
            seen[removal].add(None if variant.port == "V" else pattern, keys, logits)
