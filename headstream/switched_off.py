"""Heads of a model switched off: what of them is masked, and what stands in for their outputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from headstream.models.heads.head import heads_of
from headstream.models.heads.references import mean_z
from headstream.models.nodes import Head
from headstream.models.transformer import Fill, HeadMask, Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.study.mistakes import nearest
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.vocabulary import Vocabulary
from headstream.tasks.text.windows import reference_text

Replacement = Literal["zero", "mean", "resample"]
REFERENCE_WINDOWS = 32  # over which means are taken


@dataclass(frozen=True)
class SwitchedOff:
    """A mask of heads, and what replaces their outputs, for a whole context; None where nothing does."""

    mask: HeadMask | None
    fill: Fill | None

    def on(self, n: int) -> tuple[HeadMask | None, Fill | None]:
        """The mask and the replacements on a text of n tokens."""
        return self.mask, None if self.fill is None else [z[..., :n, :] for z in self.fill]


@torch.no_grad()
def switched_off(model: Transformer, tokens: Vocabulary, off: Sequence[str], replace: str) -> SwitchedOff:
    """Heads switched off; nothing if `off` is empty.

    zero: they write nothing; mean: the mean of each over other text; resample: what each has on another passage,
    position by position.

    Raises:
        UserError: a head or a replacement doesn't exist, or the replacement takes text and there is none.
    """
    if replace not in ("zero", "mean", "resample"):
        raise UserError(f"replace must be 'zero', 'mean' or 'resample', got {replace!r:.100}. Choose one.")
    gone = _heads_named(model, off)
    if not gone:
        return SwitchedOff(None, None)
    mask = [torch.ones(heads) for heads in model.architecture.heads_per_layer]
    for layer, head in gone:
        mask[layer][head] = 0
    if replace == "zero":
        return SwitchedOff(mask, None)
    if not isinstance(tokens, Tokens):
        raise UserError(
            f"replace={replace!r} takes text that the model was measured on, and this one was opened without any. Leave"
            " it out, or import the model in a study."
        )
    n_ctx = model.architecture.n_ctx
    text = reference_text(tokens, n_ctx, REFERENCE_WINDOWS).sequences
    if replace == "mean":
        return SwitchedOff(mask, mean_z(model, text))
    return SwitchedOff(mask, [layer.z for layer in model.trace(text[:1, :n_ctx]).layers])


def _heads_named(model: Transformer, off: Sequence[str]) -> list[Head]:
    """The heads of some names, of one alone or of a list.

    Raises:
        UserError: there is no such head.
    """
    names = [off] if isinstance(off, str) else off
    if not isinstance(names, Sequence):
        raise UserError(f'off must be names of heads, like ["L1H0"], got {off!r:.100}. List some.')
    known = {str(head): head for head in heads_of(model)}
    for name in names:
        if not isinstance(name, str) or name not in known:
            hint = nearest(str(name), known) if known else " The model has no heads."
            raise UserError(f"there is no head {name!r:.100} to switch off.{hint}")
    return [known[name] for name in names]
