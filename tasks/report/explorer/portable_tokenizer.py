"""Byte-level tokenizers as a page can run them."""

import json
from typing import Any

from tokenizers import Tokenizer

_PRETOKENIZER = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
_NOTHING = ("normalizer", "added_tokens")  # that tokenizer.js doesn't do
_NO_OPTIONS = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges")


def portable_tokenizer(tokenizer: Tokenizer) -> dict[str, Any] | None:
    """What tokenizer.js needs to encode a text as the tokenizer does; None if it is of another kind."""
    fields = json.loads(tokenizer.to_str())
    model, pretokenizer = fields["model"], fields["pre_tokenizer"] or {}
    if (
        model["type"] != "BPE"
        or any(pretokenizer.get(name) != value for name, value in _PRETOKENIZER.items())
        or any(fields[name] for name in _NOTHING)
        or any(model.get(name) for name in _NO_OPTIONS)
    ):
        return None
    vocabulary: dict[str, int] = model["vocab"]
    return {"vocabulary": sorted(vocabulary, key=vocabulary.__getitem__), "merges": model["merges"]}
