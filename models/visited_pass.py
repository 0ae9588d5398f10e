"""A forward pass that shows everything it computes, by name, to a visitor, who may put something else in its place."""

from collections.abc import Callable, Container
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.attention_heads import Attention
from headstream.models.intervened_pass import IntervenedPass, LayerChange
from headstream.models.interventions import Interventions
from headstream.models.transformer import Fill, HeadMask, Layer, LayerTrace, Transformer

# Of a name and a value [batch, ...]: the value that the pass goes on with.
Visitor = Callable[[str, Tensor], Tensor]


def activation_names(model: Transformer) -> list[str]:
    """The names of everything that a visited pass computes, in the order in which it does."""
    names = ["embedding"]
    for i, layer in enumerate(model.layers):
        there = {
            "residual_in": True,
            "pattern": True,
            "gates": layer.attention.gates is not None,
            "z": True,
            "head_outputs": True,
            "attention_out": True,
            "feed_forward_out": layer.feed_forward is not None,
            "residual_out": True,
        }
        names += [f"L{i}.{part}" for part, is_there in there.items() if is_there]
    return [*names, "residual_final", "logits"]


def visited_pass(
    model: Transformer,
    tokens: Int[Tensor, "batch pos"],
    visit: Visitor,
    names: Container[str],
    head_mask: HeadMask | None = None,
    fill: Fill | None = None,
) -> Float[Tensor, "batch pos d_vocab"]:
    """Logits of the next token, with `visit` called on whatever has one of the names (activation_names lists all).

    Head mask and fill act as in `Transformer.forward`, before `z` is visited; so do the model's interventions. To an
    edge that these cut, the writer's output is that of its `z`.
    """

    def seen(name: str, value: Tensor) -> Tensor:
        return visit(name, value) if name in names else value

    x = seen("embedding", model.embed(tokens))
    intervened = IntervenedPass(model.interventions or Interventions(), tokens)
    for i, layer in enumerate(model.layers):
        named = _Named(seen, f"L{i}", wants_heads=f"L{i}.head_outputs" in names)
        masked = _Masked(head_mask[i] if head_mask else None, fill[i] if fill else None)
        traced = _visited_layer(layer, x, named, masked, intervened.at(i))
        intervened.passed(traced)
        x = traced.residual_out
    return seen("logits", model.unembed(seen("residual_final", model.final_norm(x))))


class _Named:
    """A visitor of what one layer computes."""

    def __init__(self, visit: Visitor, layer: str, *, wants_heads: bool) -> None:
        self._visit, self._layer, self.wants_heads = visit, layer, wants_heads

    def __call__(self, part: str, value: Tensor) -> Tensor:
        return self._visit(f"{self._layer}.{part}", value)


class _Masked(NamedTuple):
    """What scales each head's z, and what stands in its place."""

    mask: Tensor | None
    fill: Tensor | None

    def of(self, z: Float[Tensor, "batch head pos d_value"]) -> Float[Tensor, "batch head pos d_value"]:
        """The z of a layer's heads after the mask."""
        if self.mask is None:
            return z
        factors = self.mask[:, None, None].to(z.dtype)
        return z * factors if self.fill is None else z * factors + self.fill * (1 - factors)


def _visited_layer(layer: Layer, x: Tensor, seen: _Named, masked: _Masked, change: LayerChange | None) -> LayerTrace:
    x, attention = seen("residual_in", x), layer.attention
    pattern, gates, mixed = _visited_mix(layer, x, seen, change)
    z = seen("z", masked.of(mixed))
    attention_out = seen("attention_out", _visited_write(attention, z, seen))
    residual_out, feed_forward_out = layer.residual_mid(x, attention_out), None
    if layer.feed_forward is not None:
        feed_forward_out = seen("feed_forward_out", layer.feed_forward(layer.read_mid(x, residual_out)))
        residual_out = layer.residual_after(residual_out, feed_forward_out)
    residual_out = seen("residual_out", residual_out)
    return LayerTrace(x, pattern, gates, z, attention.W_O, attention_out, feed_forward_out, residual_out)


def _visited_mix(
    layer: Layer, x: Tensor, seen: _Named, change: LayerChange | None
) -> tuple[Tensor, Tensor | None, Float[Tensor, "batch head pos d_value"]]:
    """Patterns, gates if there are any, and each head's mixed values after them."""
    read, attention = layer.read(x), layer.attention
    q, k, v = change.projected(layer, x, read) if change else attention.queries_keys_values(read)
    pattern = attention.pattern((q * attention.scale) @ k.transpose(2, 3))
    pattern = seen("pattern", change.pattern(pattern) if change else pattern)
    mixed, gates = pattern @ v, None
    if attention.gates is not None:
        gates = seen("gates", attention.gates(read))
        mixed = mixed * gates[..., None].to(mixed.dtype)
    return pattern, gates, change.mixed(mixed) if change else mixed


def _visited_write(attention: Attention, z: Tensor, seen: _Named) -> Float[Tensor, "batch pos d_model"]:
    """The sum of all heads' outputs; added up from single ones only if the visitor changed these."""
    if not seen.wants_heads:
        return attention.write(z)
    outputs = z @ attention.W_O
    shown = seen("head_outputs", outputs)
    if shown is outputs:
        return attention.write(z)
    total = torch.sum(shown, dim=1)
    return total if attention.b_O is None else total + attention.b_O
