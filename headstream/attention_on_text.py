"""Attention on a text, by layer and head: tensors, data frames, and a drawing in a notebook."""

from dataclasses import dataclass

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.attended_keys import attention_on, induction_keys, previous_token_keys
from headstream.models.bos import NO_BOS
from headstream.models.nodes import Head
from headstream.tasks.errors import UserError
from headstream.tasks.report.sentences import counted


@dataclass(frozen=True)
class Attention:
    """Attention on a text, by layer and head: `attention["L1H0"]` or `attention[1, 0]` is [query, key]."""

    tokens: tuple[str, ...]  # as people read them
    ids: tuple[int, ...]
    layers: tuple[Float[Tensor, "head query key"], ...]  # rows sum to 1; layers may have different numbers of heads
    opens_with_bos: bool = True

    @property
    def heads(self) -> list[str]:
        """The names of all heads, like L1H0."""
        return [str(Head(layer, head)) for layer, patterns in enumerate(self.layers) for head in range(len(patterns))]

    def __getitem__(self, head: str | tuple[int, int]) -> Float[Tensor, "query key"]:
        """The pattern of one head.

        Raises:
            UserError: there is no such head.
        """
        is_place = isinstance(head, tuple) and len(head) == 2
        name = str(Head(*head)) if is_place else head
        if not isinstance(name, str) or name not in self.heads:
            raise UserError(f"a head must be one of {', '.join(self.heads) or 'none'}, got {head!r}. Choose one.")
        patterns = [pattern for layer in self.layers for pattern in layer]
        return patterns[self.heads.index(name)]

    def frame(self, head: str | tuple[int, int]) -> pd.DataFrame:
        """The pattern of one head as a table: a row per query and a column per key, named by position and token."""
        names = [f"{place} {token}" for place, token in enumerate(self.tokens)]
        return pd.DataFrame(self[head].numpy(), index=names, columns=names)

    def __repr__(self) -> str:
        first = "to BOS" if self.opens_with_bos else "to the first"
        headings = "".join(f"{heading:>14}" for heading in (first, "to itself", "to previous", "after copies"))
        lines = [
            f"Attention on {counted(len(self.tokens), 'token')}: {' '.join(self.tokens)}",
            f"{'mean share':<10}{headings}",
        ]
        return "\n".join([*lines, *(f"{head:<10}{self._shares(head)}" for head in self.heads)])

    def _shares(self, head: str) -> str:
        """Mean shares of attention to some kinds of keys, over queries after the first that have such keys."""
        ids = torch.tensor([self.ids])
        itself = torch.eye(ids.shape[1]).bool()[None]
        first, bos = itself[:, :1].expand_as(itself), self.ids[0] if self.opens_with_bos else NO_BOS
        shares = (
            attention_on(self[head][None, None], keys)[0, 0, 1:].nanmean()
            for keys in (first, itself, previous_token_keys(ids, bos), induction_keys(ids, bos))
        )
        return "".join(f"{'-' if share.isnan() else f'{share:.2f}':>14}" for share in shares)
