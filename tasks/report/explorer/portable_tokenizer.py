"""Tokenizers as a page can run them: byte-level BPE, and sentencepiece's."""

import json
from typing import Any

from tokenizers import Tokenizer

_NO_OPTIONS = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges")  # of tokenizer.js
_DIGITS = {"type": "Digits", "individual_digits": True}
_SPACE = "\u2581"  # as sentencepiece writes it
_SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE}
_BEFORE = {"type": "Prepend", "prepend": _SPACE}


def portable_tokenizer(tokenizer: Tokenizer) -> dict[str, Any] | None:
    """What tokenizer.js needs to encode a text as the tokenizer does; None if it is of another kind.

    Special tokens are text there, as they are in a corpus.
    """
    fields = json.loads(tokenizer.to_str())
    model = fields["model"]
    if model["type"] != "BPE" or any(map(model.get, _NO_OPTIONS)):
        return None
    if not all(token["special"] for token in fields["added_tokens"]):
        return None
    rule = _sentencepiece(fields) if model["byte_fallback"] else _byte_level(fields)
    return rule and {**rule, "vocabulary": model["vocab"], "merges": model["merges"]}


def _byte_level(fields: dict[str, Any]) -> dict[str, Any] | None:
    """How a text becomes words of bytes."""
    found = fields["pre_tokenizer"] or {}
    steps = found["pretokenizers"] if found.get("type") == "Sequence" else [found]
    *before, last = steps
    if fields["normalizer"] or last.get("type") != "ByteLevel" or not last["use_regex"] or last["add_prefix_space"]:
        return None
    return {"bytes": True, "digits": before == [_DIGITS], "prefix": ""} if before in ([], [_DIGITS]) else None


def _sentencepiece(fields: dict[str, Any]) -> dict[str, Any] | None:
    """How a text becomes one word of characters, in which bytes stand for those that have no token."""
    found = fields["normalizer"] or {}
    steps = found["normalizers"] if found.get("type") == "Sequence" else [found]
    if fields["pre_tokenizer"] or steps not in ([_SPACES], [_BEFORE, _SPACES]):
        return None
    return {"bytes": False, "digits": False, "prefix": _SPACE if len(steps) == 2 else ""}
