"""A pass of a model in which something is done to its heads.

A reader whose edge is cut reads, at that port, the stream without what the writer wrote to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.interventions import Interventions, PatternRule
from headstream.models.nodes import HEAD_PORTS, MLP, Head, Port

if TYPE_CHECKING:
    from headstream.models.transformer import Layer, LayerTrace

QueriesKeysValues = tuple[Tensor, Tensor, Tensor]  # queries, keys and values


@dataclass(frozen=True)
class LayerChange:
    """What is done to the heads of one layer in one pass."""

    silenced: tuple[int, ...]
    patterns: Mapping[int, Float[Tensor, "*batch q_pos k_pos"]]  # of clamped heads
    unseen: Sequence[tuple[Port, list[int], Float[Tensor, "batch pos d_model"]]]  # by heads, at a port

    def projected(
        self, layer: "Layer", x: Float[Tensor, "batch pos d_model"], read: Float[Tensor, "batch pos d_model"]
    ) -> QueriesKeysValues:
        """Queries, keys and values of a layer that reads the stream x, as `read` after its norm."""
        found = list(layer.attention.queries_keys_values(read))
        for port, heads, unseen in self.unseen:
            place = HEAD_PORTS.index(port)
            without = layer.attention.projected(layer.read(x - unseen), port)
            found[place] = torch.where(_only(heads, without), without, found[place])
        q, k, v = found
        return q, k, v

    def pattern(self, pattern: Float[Tensor, "batch head q_pos k_pos"]) -> Float[Tensor, "batch head q_pos k_pos"]:
        """Patterns in which clamped heads attend by their rule."""
        for head, rule in self.patterns.items():
            fixed = rule.to(pattern.dtype).expand(len(pattern), *rule.shape[-2:])[:, None]
            pattern = torch.where(_only([head], pattern), fixed, pattern)
        return pattern

    def mixed(self, z: Float[Tensor, "batch head pos d_value"]) -> Float[Tensor, "batch head pos d_value"]:
        """Mixed values of which silenced heads have none."""
        return z.masked_fill(_only(self.silenced, z), 0) if self.silenced else z


class IntervenedPass:
    """One pass of a model in which something is done to its heads, layer by layer."""

    def __init__(self, interventions: Interventions, tokens: Int[Tensor, "batch pos"]) -> None:
        self.interventions, self.tokens = interventions, tokens
        self._passed: list[LayerTrace] = []

    def at(self, layer: int) -> LayerChange | None:
        """What is done to the heads of a layer, after all layers before it have been passed; None if nothing is."""
        own = self.interventions
        unseen = [(port, heads, self._written(writers)) for port, heads, writers in own.cuts_of(layer)]
        patterns = {
            node.head: rule_pattern(rule, self.tokens, own.bos)
            for node, rule in own.clamped.items()
            if node.layer == layer
        }
        silenced = tuple(node.head for node in own.silenced if node.layer == layer)
        return LayerChange(silenced, patterns, unseen) if silenced or patterns or unseen else None

    def passed(self, trace: "LayerTrace") -> None:
        """Take note of what the next layer computed."""
        self._passed.append(trace)

    def _written(self, writers: Sequence[Head | MLP]) -> Float[Tensor, "batch pos d_model"]:
        """What some heads and feed-forward layers wrote to the stream, in all."""
        parts = []
        for layer, trace in enumerate(self._passed):
            heads = [node.head for node in writers if isinstance(node, Head) and node.layer == layer]
            if heads:
                parts.append(trace.z[:, heads].transpose(1, 2).flatten(2) @ trace.W_O[heads].flatten(0, 1))
            if MLP(layer) in writers:
                assert trace.feed_forward_out is not None
                parts.append(trace.feed_forward_out)
        return torch.stack(parts).sum(0)


def rule_pattern(rule: PatternRule, tokens: Int[Tensor, "batch pos"], bos: int) -> Float[Tensor, "*batch q_pos k_pos"]:
    """The pattern of a head that attends by a rule; where the rule has no key, to the first position.

    previous: the token before, as `previous_token_keys`; self: the query's own; first: the first position; uniform: all
    keys alike; copies: what followed earlier copies of the query's token, as `induction_keys`, all alike. BOS is
    neither a token nor a copy. (These keys are said here again, so that what is measured decides no training.)
    """
    n, content = tokens.shape[1], tokens != bos
    keys = torch.zeros(1, n, n, dtype=torch.bool, device=tokens.device)
    match rule:
        case "self":
            keys = torch.eye(n, dtype=torch.bool, device=tokens.device)
        case "uniform":
            keys = torch.ones_like(keys).tril()
        case "previous":
            keys = torch.ones_like(keys).tril(-1).triu(-1) & content[:, :, None] & content[:, None, :]
        case "copies":
            same = (tokens[:, :, None] == tokens[:, None, :]) & content[:, :, None]
            keys = torch.zeros_like(same)
            keys[:, :, 1:] = same[:, :, :-1] & content[:, None, 1:]
            keys = keys.tril(-1)
    counted = keys.sum(-1, keepdim=True)
    first = torch.zeros(n, device=tokens.device)
    first[0] = 1
    return torch.where(counted > 0, keys / counted.clamp(min=1), first)


def _only(heads: Sequence[int], like: Float[Tensor, "batch head *rest"]) -> Tensor:
    """A mask of these heads that fits a tensor's shape."""
    mask = torch.zeros(like.shape[1], dtype=torch.bool, device=like.device)
    mask[list(heads)] = True
    return mask[:, None, None]
