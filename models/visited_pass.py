"""A forward pass that shows everything it computes, by name, to a visitor, who may put something else in its place."""

from collections.abc import Callable, Container

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.attention_heads import Attention
from headstream.models.transformer import Fill, HeadMask, Layer, Transformer

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

    Head mask and fill act as in `Transformer.forward`, before `z` is visited.
    """

    def seen(name: str, value: Tensor) -> Tensor:
        return visit(name, value) if name in names else value

    x = seen("embedding", model.embed(tokens))
    for i, layer in enumerate(model.layers):
        named = _Named(seen, f"L{i}", wants_heads=f"L{i}.head_outputs" in names)
        x = _visited_layer(layer, x, named, head_mask[i] if head_mask else None, fill[i] if fill else None)
    return seen("logits", model.unembed(seen("residual_final", model.final_norm(x))))


class _Named:
    """A visitor of what one layer computes."""

    def __init__(self, visit: Visitor, layer: str, *, wants_heads: bool) -> None:
        self._visit, self._layer, self.wants_heads = visit, layer, wants_heads

    def __call__(self, part: str, value: Tensor) -> Tensor:
        return self._visit(f"{self._layer}.{part}", value)


def _visited_layer(layer: Layer, x: Tensor, seen: _Named, mask: Tensor | None, fill: Tensor | None) -> Tensor:
    x = seen("residual_in", x)
    z = seen("z", _masked(_visited_mix(layer.attention, layer.read(x), seen), mask, fill))
    attention_out = seen("attention_out", _visited_write(layer.attention, z, seen))
    mid = layer.residual_mid(x, attention_out)
    if layer.feed_forward is None:
        return seen("residual_out", mid)
    feed_forward_out = seen("feed_forward_out", layer.feed_forward(layer.read_mid(x, mid)))
    return seen("residual_out", layer.residual_after(mid, feed_forward_out))


def _visited_mix(attention: Attention, read: Tensor, seen: _Named) -> Float[Tensor, "batch head pos d_value"]:
    """Each head's mixed values, after gates."""
    q, k, v = attention.queries_keys_values(read)
    z = seen("pattern", attention.pattern((q * attention.scale) @ k.transpose(2, 3))) @ v
    if attention.gates is None:
        return z
    return z * seen("gates", attention.gates(read))[..., None].to(z.dtype)


def _masked(z: Tensor, mask: Tensor | None, fill: Tensor | None) -> Tensor:
    if mask is None:
        return z
    factors = mask[:, None, None].to(z.dtype)
    return z * factors if fill is None else z * factors + fill * (1 - factors)


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
