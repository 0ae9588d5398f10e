"""Heads of a model switched off: what of them is masked, and what stands in for their outputs."""

from collections.abc import Sequence
from typing import Literal

import torch

from headstream.models.heads.head import heads_of
from headstream.models.heads.references import mean_z
from headstream.models.nodes import Head
from headstream.models.transformer import Fill, HeadMask, Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.study.mistakes import nearest
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.windows import reference_text

Replacement = Literal["zero", "mean", "resample"]
REFERENCE_WINDOWS = 32  # over which means are taken


def masked(
    model: Transformer, tokens: Tokens, n: int, off: Sequence[str], replace: str
) -> tuple[HeadMask | None, Fill | None]:
    """A mask of heads, and what replaces their outputs on a text of n tokens; nothing if no head is off.

    zero: nothing; mean: the mean of each over other text; resample: what each has on another passage, position by
    position.

    Raises:
        UserError: a head or a replacement doesn't exist.
    """
    names = [off] if isinstance(off, str) else list(off)
    known = {str(head): head for head in heads_of(model)}
    for name in names:
        if name not in known:
            raise UserError(f"there is no head {name!r} to switch off.{nearest(str(name), known)}")
    if replace not in ("zero", "mean", "resample"):
        raise UserError(f"replace must be 'zero', 'mean' or 'resample', got {replace!r}. Choose one.")
    if not names:
        return None, None
    gone: list[Head] = [known[name] for name in names]
    mask = [torch.ones(heads) for heads in model.architecture.heads_per_layer]
    for layer, head in gone:
        mask[layer][head] = 0
    if replace == "zero":
        return mask, None
    text = reference_text(tokens, model.architecture.n_ctx, REFERENCE_WINDOWS).sequences
    if replace == "mean":
        return mask, mean_z(model, text)
    return mask, [layer.z for layer in model.trace(text[:1, :n]).layers]
