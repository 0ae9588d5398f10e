"""From where and at what heads look while a model does what pairs of prompts ask, and what they write on the answer.

A head's query is the position at which the change of its output counts most to first order, pair by pair: by the
gradient halfway between the two prompts, since at the clean one what attends surely has hardly any.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.prompts.pairs import Pairs
from headstream.models.prompts.patched_runs import BaseRun, base_run, logits_of
from headstream.models.transformer import Transformer

OTHER = "other tokens"
LOOKED_AT = (
    OTHER,
    "the first token",
    "the token before it",
    "itself",
    "an earlier copy of it",
    "what followed an earlier copy of it",
    "the wrong answer",
    "the answer",
    "the token that differs",
    "the last token",
)  # a later one counts before an earlier one; of queries only those that don't depend on a query


class Looks(NamedTuple):
    """Of each head, in the order of writers, and each pair: places are numbers in LOOKED_AT."""

    query: Int[Tensor, "head pair"]  # the place from which it looks
    key: Int[Tensor, "head pair"]  # the place that it attends to most from there
    attention: Float[Tensor, "head pair"]  # that this gets
    direct: Float[Tensor, "head pair"]  # what it adds to the log-odds past all later layers, nats; scale of norm frozen


def head_looks(model: Transformer, pairs: Pairs) -> Looks:
    """Where heads look at the clean prompts. Direct effects are NaN where what heads write is normalised."""
    clean, corrupt = base_run(model, pairs.clean), base_run(model, pairs.corrupt)
    gradients = _gradients_by_attention(model, (clean.embedding + corrupt.embedding) / 2, pairs)
    kinds, direct = _Kinds(pairs), _direct(clean, pairs)
    found: list[tuple[Tensor, ...]] = []
    levels = [level for level in clean.graph.levels if level.kind == "attention"]
    for level, gradient in zip(levels, gradients, strict=True):
        attention, own = model.layers[level.layer].attention, clean.sublayers[level.place].writers
        change = clean.written[own] - corrupt.written[own]
        query = torch.einsum("hbpd,bpd->hbp", change, gradient).abs().argmax(2)
        q, k, _ = attention.finished(*clean.projected[level.layer])
        pattern = attention.pattern((q * attention.scale) @ k.transpose(2, 3)).transpose(0, 1)
        index = query[:, :, None, None].expand(-1, -1, 1, pattern.shape[3])
        most, key = pattern.gather(2, index)[:, :, 0].max(2)
        written = clean.written[own][:, :, -1]
        found.append(
            (kinds.of_query(query), kinds.of_key(query, key), most, torch.einsum("hbd,bd->hb", written, direct))
        )
    return Looks(*(torch.cat(parts) for parts in zip(*found, strict=True)))


def _gradients_by_attention(
    model: Transformer, embedding: Float[Tensor, "pair pos d_model"], pairs: Pairs
) -> tuple[Float[Tensor, "pair pos d_model"], ...]:
    """The gradient of the log-odds by what the heads of each layer write together."""
    outputs = []
    with torch.enable_grad():
        x = embedding.clone().requires_grad_()
        for layer in model.layers:
            _, z = layer.attention.mix(layer.read(x))
            outputs.append(layer.attention.write(z))
            _, x = layer.after_attention(x, outputs[-1])
        return torch.autograd.grad(pairs.log_odds(logits_of(model, x)).sum(), outputs)


def _direct(clean: BaseRun, pairs: Pairs) -> Float[Tensor, "pair d_model"]:
    """The direction in which a writer raises the log-odds at the last position, past all later layers."""
    if clean.normalises_after:
        return torch.full_like(clean.embedding[:, -1], torch.nan)
    norm, last = clean.model.final_norm, clean.streams[-1][:, -1]
    read = norm(last).clone()
    with torch.enable_grad():
        read.requires_grad_()
        (gradient,) = torch.autograd.grad(pairs.log_odds(clean.model.unembed(read)).sum(), read)
    if norm.kind == "none":
        return gradient
    scaled = gradient * norm.scale(last)
    return scaled - scaled.mean(-1, keepdim=True) if norm.kind == "layernorm" else scaled


class _Kinds:
    """The places of positions in the clean prompts of pairs."""

    def __init__(self, pairs: Pairs) -> None:
        self._tokens = pairs.clean
        self._differs = pairs.clean != pairs.corrupt
        self._answer, self._wrong = (
            (pairs.clean[:, :, None] == answers[:, None]).any(2) for answers in (pairs.answers, pairs.wrong)
        )

    def of_query(self, query: Int[Tensor, "head pair"]) -> Int[Tensor, "head pair"]:
        """The places of positions by themselves."""
        return self._ranked(query, {"the last token": query == self._tokens.shape[1] - 1})

    def of_key(self, query: Int[Tensor, "head pair"], key: Int[Tensor, "head pair"]) -> Int[Tensor, "head pair"]:
        """The places of positions, seen from others."""
        same = self._at(self._tokens, query)
        seen = {
            "the first token": key == 0,
            "the token before it": key == query - 1,
            "itself": key == query,
            "an earlier copy of it": (self._at(self._tokens, key) == same) & (key < query),
            "what followed an earlier copy of it": (self._at(self._tokens, key - 1) == same)
            & (key > 0)
            & (key <= query),
        }
        return self._ranked(key, seen)

    def _ranked(self, position: Int[Tensor, "head pair"], seen: dict[str, Tensor]) -> Int[Tensor, "head pair"]:
        seen = seen | {
            "the wrong answer": self._at(self._wrong, position),
            "the answer": self._at(self._answer, position),
            "the token that differs": self._at(self._differs, position),
        }
        found = torch.zeros_like(position)
        for rank, name in enumerate(LOOKED_AT):
            if name in seen:
                found = found.where(~seen[name], rank)
        return found

    @staticmethod
    def _at(values: Tensor, position: Int[Tensor, "head pair"]) -> Tensor:
        return values.gather(1, position.T.clamp(min=0)).T
