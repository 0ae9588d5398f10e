"""Attention on a text, by layer and head: tensors, data frames, and a drawing in a notebook."""

import math
from dataclasses import dataclass

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from headstream.attention_drawing import attention_html
from headstream.models.bos import NO_BOS
from headstream.models.heads.attended_keys import attention_on, induction_keys, previous_token_keys
from headstream.models.nodes import Head
from headstream.tasks.errors import UserError
from headstream.tasks.report.sentences import counted


@dataclass(frozen=True)
class Attention:
    """Attention on a text, by layer and head: `attention["L1H0"]` or `attention[1, 0]` is [query, key].

    In a notebook it draws itself.

    >>> attention = model.attention("def colour(self): return self.colour")
    >>> attention["L1H0"], attention[1, 0], attention.tokens
    """

    tokens: tuple[str, ...]  # as people read them
    ids: tuple[int, ...]
    layers: tuple[Float[Tensor, "head query key"], ...]  # rows sum to 1; layers may have different numbers of heads
    opens_with_bos: bool = True

    @property
    def heads(self) -> list[str]:
        """The names of all heads, like L1H0.

        >>> model.attention("def colour(self)").heads
        """
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

    def _ipython_key_completions_(self) -> list[str]:
        return self.heads

    def frame(self, head: str | tuple[int, int]) -> pd.DataFrame:
        """The pattern of one head as a table: a row per query and a column per key, named by position and token.

        >>> model.attention("def colour(self)").frame("L1H0").round(2)
        """
        names = [f"{place} {token}" for place, token in enumerate(self.tokens)]
        return pd.DataFrame(self[head].detach().numpy(), index=names, columns=names)

    @property
    def shares(self) -> pd.DataFrame:
        """Mean shares of attention to kinds of keys, over queries after the first that have such keys; a row a head.

        >>> model.attention("def colour(self): return self.colour").shares.round(2)
        """
        ids = torch.tensor([self.ids])
        itself = torch.eye(ids.shape[1]).bool()[None]
        bos = self.ids[0] if self.opens_with_bos else NO_BOS
        kinds = {
            "to BOS" if self.opens_with_bos else "to the first": itself[:, :1].expand_as(itself),
            "to itself": itself,
            "to previous": previous_token_keys(ids, bos),
            "after copies": induction_keys(ids, bos),
        }
        patterns = [pattern.detach()[None] for pattern in self.layers]
        columns = {
            kind: [share for pattern in patterns for share in attention_on(pattern, keys)[0, :, 1:].nanmean(1).tolist()]
            for kind, keys in kinds.items()
        }
        return pd.DataFrame(columns, index=self.heads)

    def __repr__(self) -> str:
        columns = self._told_shares()
        rows = zip(self.heads, *columns.values(), strict=True)
        lines = [
            f"Attention on {counted(len(self.tokens), 'token')}: {' '.join(self.tokens)}",
            f"{'mean share':<10}{''.join(f'{heading:>14}' for heading in columns)}",
        ]
        return "\n".join([*lines, *(f"{head:<10}{''.join(f'{each:>14}' for each in row)}" for head, *row in rows)])

    def _repr_html_(self) -> str:
        """A drawing, at first of the head that looks most at what followed earlier copies."""
        copies = self.shares["after copies"].dropna()
        first = str(copies.idxmax()) if len(copies) else None
        return attention_html(self.tokens, self.heads, self.layers, self._told_shares(), first)

    def _told_shares(self) -> dict[str, list[str]]:
        return {
            kind: ["-" if math.isnan(share) else f"{share:.2f}" for share in column]
            for kind, column in self.shares.items()
        }


class AttentionOnTexts(list[Attention]):
    """Attention on each of several texts: a list, which in a notebook draws them one below the other.

    >>> model.attention(["def colour(self)", "return self.colour"])[0]["L1H0"]
    """

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self)
