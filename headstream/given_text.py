"""Text as people give it in Python: a string, or token ids as they are; one, or a batch of these."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from headstream.models.bos_in_tensors import opened
from headstream.tasks.errors import UserError
from headstream.tasks.text.vocabulary import Vocabulary

# A text, or token ids [pos], BOS included if the model has one; or a list of these, or token ids [batch, pos].
Given = str | Sequence[Any] | np.ndarray | Tensor
KINDS = "a string of Unicode, a list of token ids, or a list of these"


def sequences_of(given: Given, tokens: Vocabulary, n_ctx: int) -> tuple[list[Int[Tensor, "1 pos"]], bool]:
    """Token ids of each text that is given, and True if it is a batch.

    Raises:
        UserError: it is neither text nor token ids of this vocabulary, or one is empty or longer than the context.
    """
    held = _plain(given)
    if isinstance(held, str):
        return [ids_of_text(held, tokens, n_ctx)], False
    if not isinstance(held, list):
        raise UserError(f"a text must be {KINDS}, got {given!r:.100}. Correct it.")
    if not held:
        raise UserError(f"a text must be {KINDS}, got an empty list. Give some text.")
    if not any(isinstance(each, str | list) for each in held):
        return [_checked_ids(held, tokens, n_ctx)], False
    return [_one(each, tokens, n_ctx) for each in held], True


def ids_of_text(text: str, tokens: Vocabulary, n_ctx: int) -> Int[Tensor, "1 pos"]:
    """A text as token ids, after BOS, if there is one.

    Raises:
        UserError: it isn't text, is longer than the context, or is empty where there is no BOS.
    """
    try:
        encoding = tokens.tokenizer.encode(text, add_special_tokens=False)
    except (TypeError, UnicodeError):
        raise UserError(f"a text must be a string of Unicode, got {text!r:.100}. Correct it.") from None
    return _fitting(opened(torch.tensor([encoding.ids], dtype=torch.int64), tokens.bos), n_ctx)


def _one(held: Any, tokens: Vocabulary, n_ctx: int) -> Int[Tensor, "1 pos"]:
    if isinstance(held, str):
        return ids_of_text(held, tokens, n_ctx)
    if not isinstance(held, list):
        raise UserError(f"each of a batch must be a text or a list of token ids, got {held!r:.100}. Correct it.")
    return _checked_ids(held, tokens, n_ctx)


def _checked_ids(ids: list[Any], tokens: Vocabulary, n_ctx: int) -> Int[Tensor, "1 pos"]:
    for token in ids:
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < tokens.vocabulary:
            last = tokens.vocabulary - 1
            raise UserError(f"token ids must be whole numbers from 0 to {last}, got {token!r:.100}. Correct them.")
    return _fitting(torch.tensor([ids], dtype=torch.int64), n_ctx)


def _fitting(ids: Int[Tensor, "1 pos"], n_ctx: int) -> Int[Tensor, "1 pos"]:
    n = ids.shape[1]
    if n > n_ctx:
        raise UserError(f"a text must fit n_ctx={n_ctx} tokens, BOS included, got {n}. Shorten it.")
    if not n:
        raise UserError("the text is empty, and the model has no BOS to read instead. Give some text.")
    return ids


def _plain(given: Any) -> Any:
    """Lists of plain numbers and strings, at any depth, for tensors, arrays, series and other sequences."""
    if hasattr(given, "tolist"):
        return given.tolist()
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        return [_plain(each) for each in given]
    return given
