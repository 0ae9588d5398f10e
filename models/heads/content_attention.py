"""Attention that follows what a sequence contains: what keys get beyond what their places alone would get.

A head that looks at a fixed offset or a fixed position has the same pattern in every sequence, so that its keys get as
much from the patterns of other sequences as from its own. Whatever else a head looks at, only what is beyond that can
come from the content of the sequence.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstream.models.heads.attended_keys import attention_on


class Score(NamedTuple):
    """A score of each head, NaN without a query that counts, and what each sequence contributes to its error."""

    mean: Float[Tensor, "head"]
    parts: Float[Tensor, "head sequence"]  # they sum to 0, as those of `parts_of_mean`


class ContentAttention:
    """The attention of a layer's heads on some keys of each query, of as many batches as are added."""

    def __init__(self) -> None:
        self._attention: list[Tensor] = []
        self._keys: list[Tensor] = []
        self._total: Tensor | None = None  # of the patterns, over the sequences in which a query has such keys

    def add(self, pattern: Float[Tensor, "batch head q_pos k_pos"], keys: Bool[Tensor, "batch q_pos k_pos"]) -> None:
        """Count the patterns of more sequences."""
        pattern = pattern.float()
        total = torch.einsum("bhqk,bq->hqk", pattern, keys.any(-1).float())
        self._total = total if self._total is None else self._total + total
        self._attention.append(attention_on(pattern, keys))
        self._keys.append(keys)

    @property
    def has_any(self) -> bool:
        """Tell if any sequences were added."""
        return self._total is not None

    def score(self) -> Score:
        """Attention on the keys beyond what place earns, as a share of the most that could be beyond it.

        1 if all attention is on the keys, 0 for a pattern that is the same in every sequence. What place earns a query
        is what its keys get, on average, from the patterns of the other sequences in which a query at that position
        counts; where there is no other, nothing is known. Source: Cohen 1960, kappa, agreement beyond chance.
        """
        if self._total is None:
            raise ValueError("no sequences were added")
        attention, keys = torch.cat(self._attention).double(), torch.cat(self._keys)
        from_all = torch.einsum("hqk,bqk->bhq", self._total, keys.float()).double()
        n_others = (keys.any(-1).sum(0) - 1).double()
        by_place = (from_all - attention) / n_others.where(n_others > 0, torch.nan)  # NaN where no query counts
        beyond, most = (values.nan_to_num().transpose(0, 1) for values in (attention - by_place, 1 - by_place))
        whole = most.sum((1, 2))
        mean = beyond.sum((1, 2)) / whole.where(whole > 0, torch.nan)
        parts = (beyond - mean[:, None, None] * most).sum(2) / whole[:, None]
        return Score(mean.cpu(), parts.cpu())
