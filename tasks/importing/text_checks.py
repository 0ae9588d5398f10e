"""Checks of a model from elsewhere on text: its tokenizer's round trip, its loss, and a continuation."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer

from headstream.models.bos import n_bos
from headstream.models.losses import token_losses
from headstream.models.transformer import Transformer
from headstream.tasks.importing.import_check import ImportCheck
from headstream.tasks.text.bigram_counts import unigram_probabilities
from headstream.tasks.text.token_reading import Tokens

LOSS_DOCUMENTS, LOSS_TOKENS = 8, 128
LOSS_CHARACTERS = 64 * LOSS_TOKENS  # of a document, enough to hold these tokens
PROMPT_TOKENS, NEW_TOKENS = 16, 20
SHOWN = 40  # characters of a text that is shown


def tokenizer_checks(tokenizer: Tokenizer, texts: Sequence[str]) -> list[ImportCheck]:
    """Check that documents survive encoding and decoding, and count unknown tokens."""
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    decoded = tokenizer.decode_batch([encoding.ids for encoding in encodings], skip_special_tokens=False)
    changed = [(text, again) for text, again in zip(texts, decoded, strict=True) if text != again]
    detail = f"share of {len(texts):,} validation documents that decode to what they were"
    if changed:
        text, again = changed[0]
        place = next(
            (i for i, (a, b) in enumerate(zip(text, again, strict=False)) if a != b), min(map(len, changed[0]))
        )
        shown = slice(place, place + SHOWN)
        detail += f"; the first that doesn't has {again[shown]!r} for {text[shown]!r}"
    unknown = getattr(tokenizer.model, "unk_token", None)
    unknown_id = tokenizer.token_to_id(unknown) if unknown else None
    n_unknown = 0 if unknown_id is None else sum(encoding.ids.count(unknown_id) for encoding in encodings)
    n_tokens = sum(len(encoding.ids) for encoding in encodings)
    return [
        ImportCheck("round_trip", 1 - len(changed) / len(texts) if texts else None, detail),
        ImportCheck(
            "unknown_tokens", n_unknown / n_tokens if n_tokens else None, f"share of their {n_tokens:,} tokens"
        ),
    ]


def loss_checks(model: Transformer, tokens: Tokens, texts: Sequence[str], *, untrained: bool) -> list[ImportCheck]:
    """Compare the loss on the beginnings of documents with that of the training split's token counts."""
    by_counts = -np.log(unigram_probabilities(tokens.counts))
    nats = counted_nats = 0.0
    n_tokens = n_bytes = 0
    for beginning in _beginnings(tokens, texts, min(LOSS_TOKENS, model.architecture.n_ctx)):
        ids = torch.tensor([beginning.ids])
        nats += float(token_losses(model(ids[:, :-1]), ids[:, 1:]).double().sum())
        counted_nats += float(by_counts[beginning.ids[1:]].sum())
        n_tokens += len(beginning.ids) - 1
        n_bytes += beginning.n_bytes
    detail = f"on {n_tokens:,} tokens, the beginnings of {min(len(texts), LOSS_DOCUMENTS)} validation documents"

    def check(name: str, unit: float, what: str) -> ImportCheck:
        if not unit:
            return ImportCheck(name, None, "not checked: no validation document has a token to predict")
        counted = counted_nats / unit
        return ImportCheck(
            name, nats / unit, f"{what} {detail}; token counts: {counted:.3f}", None if untrained else counted
        )

    return [
        check("loss_nats", n_tokens, "nats per token"),
        check("loss_bits_per_byte", n_bytes * math.log(2), "bits per byte"),
    ]


class _Beginning(NamedTuple):
    ids: list[int]  # BOS first, where there is one
    n_bytes: int  # of text, in all tokens but the first


def _beginnings(tokens: Tokens, texts: Sequence[str], most_tokens: int) -> Iterator[_Beginning]:
    """The beginnings of documents that are evenly spread over all."""
    n = min(len(texts), LOSS_DOCUMENTS)
    bos = [tokens.bos] * n_bos(tokens.bos)
    for text in (texts[i * len(texts) // n] for i in range(n)):
        encoding = tokens.tokenizer.encode(text[:LOSS_CHARACTERS], add_special_tokens=False)
        ids = (bos + encoding.ids)[: most_tokens + 1]
        if len(ids) > 1:
            first = 0 if bos else encoding.offsets[0][1]
            last = encoding.offsets[len(ids) - len(bos) - 1][1]
            yield _Beginning(ids, len(text[first:last].encode()))


def continuation(model: Transformer, tokens: Tokens, texts: Sequence[str], prompt: str | None) -> ImportCheck:
    """The model's continuation of a prompt by the likeliest tokens; by default, of the start of a validation text."""
    tokenizer, bos = tokens.tokenizer, [tokens.bos] * n_bos(tokens.bos)
    ids = tokenizer.encode(prompt or "".join(texts[:1])[:LOSS_CHARACTERS], add_special_tokens=False).ids
    ids = ids[: model.architecture.n_ctx // 2 if prompt else PROMPT_TOKENS]
    if not bos + ids:
        return ImportCheck("continuation", None, "not checked: there is no prompt")
    new: list[int] = []
    while len(new) < NEW_TOKENS and len(bos + ids + new) <= model.architecture.n_ctx:
        new.append(int(model(torch.tensor([bos + ids + new]))[0, -1].argmax()))
    begun, whole = tokenizer.decode(ids), tokenizer.decode(ids + new)
    return ImportCheck("continuation", None, f"{begun!r} goes on with {whole[len(begun) :]!r}")
