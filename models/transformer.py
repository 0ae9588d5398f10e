"""The transformer under study: weights by head, one forward pass, everything inside it returned by name.

Row vectors throughout: x is [pos, d_model] and maps act on the right (x @ W). An attention pattern is
[query position, key position] and its rows sum to 1. Elhage et al. 2021 write the transposes.

Matrix products run in the dtype of their weights and the residual stream in that of the embedding, so a model whose
other weights are bfloat16 keeps a float32 stream.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from models.architecture import Architecture
from models.attention_patterns import (
    at_every_distance,
    causal_mask,
    full_attention,
    keep_top,
    relative_scores,
    windowed_attention,
)
from models.gates import DynamicGates, StaticGates
from models.parameters import DeclaringModule, declared, declared_parameters

HeadMask = Sequence[Float[Tensor, "_"]]  # one number a head, a tensor a layer
Fill = Sequence[Float[Tensor, "... _ _ _"]]  # takes the place of masked z: [(batch,) head, pos or 1, d_value] a layer


@dataclass(frozen=True)
class LayerTrace:
    """What one layer computed."""

    residual_in: Float[Tensor, "batch pos d_model"]
    pattern: Float[Tensor, "batch head q_pos k_pos"]
    gates: Float[Tensor, "batch head pos"] | None  # what each head's z was multiplied by, before the head mask
    z: Float[Tensor, "batch head pos d_value"]  # what each head mixed, after gates and the head mask, before W_O
    W_O: Float[Tensor, "head d_value d_model"]
    attention_out: Float[Tensor, "batch pos d_model"]
    feed_forward_out: Float[Tensor, "batch pos d_model"] | None
    residual_out: Float[Tensor, "batch pos d_model"]

    @property
    def head_outputs(self) -> Float[Tensor, "batch head pos d_model"]:
        """What each head writes to the stream: z W_O (the layer's output bias belongs to no head)."""
        return self.z @ self.W_O


@dataclass(frozen=True)
class Trace:
    """What one forward pass computed."""

    embedding: Float[Tensor, "batch pos d_model"]
    layers: tuple[LayerTrace, ...]
    residual_final: Float[Tensor, "batch pos d_model"]  # after the final norm, what W_U reads
    logits: Float[Tensor, "batch pos d_vocab"]


SINUSOID_BASE = 10_000
SHARED = "_shared"  # ends the names of maps that groups of heads share


def sinusoids(n: int, width: int, like: Tensor, base: float = SINUSOID_BASE) -> Float[Tensor, "pos width"]:
    """Sine and cosine at geometrically spaced wavelengths. Source: Vaswani et al. 2017, 3.5."""
    dtype = torch.promote_types(like.dtype, torch.float32)  # bfloat16 can't count positions
    position = torch.arange(n, dtype=dtype, device=like.device)[:, None]
    rate = base ** (-torch.arange(0, width, 2, dtype=dtype, device=like.device) / width)
    return torch.stack([(position * rate).sin(), (position * rate).cos()], dim=-1).flatten(1)[:, :width].to(like.dtype)


@dataclass(frozen=True)
class Rotary:
    """Rotary positions: pairs of coordinates turned by angles that grow with position. Source: Su et al. 2021."""

    width: int  # how many coordinates, the first ones, are turned
    base: float
    half_split: bool  # whether pairs are i and i + width / 2, not 2 i and 2 i + 1

    def __call__(self, x: Float[Tensor, "*batch pos d_head"]) -> Float[Tensor, "*batch pos d_head"]:
        """Turn queries or keys, the first position by nothing."""
        sin, cos = sinusoids(x.shape[-2], self.width, x, self.base).unflatten(1, (-1, 2)).unbind(-1)
        turned, rest = x[..., : self.width], x[..., self.width :]
        pairs, axis = ((2, -1), -2) if self.half_split else ((-1, 2), -1)
        first, second = turned.unflatten(-1, pairs).unbind(axis)
        turned = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=axis).flatten(-2)
        return torch.cat([turned, rest], dim=-1) if rest.shape[-1] else turned


class Norm(DeclaringModule):
    """LayerNorm, RMSNorm or nothing, by the architecture's choice."""

    def __init__(self, kind: str, width: int, epsilon: float) -> None:
        super().__init__()
        self.kind, self.epsilon = kind, epsilon
        self.weight = declared("vector", width, in_products=False, start=1) if kind != "none" else None
        self.bias = declared("vector", width, in_products=False, start=0) if kind == "layernorm" else None

    def forward(self, x: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch width"]:
        """Normalise x over its last axis."""
        if self.kind == "layernorm":
            return F.layer_norm(x, x.shape[-1:], _like(self.weight, x), _like(self.bias, x), self.epsilon)
        return F.rms_norm(x, x.shape[-1:], _like(self.weight, x), self.epsilon) if self.kind == "rmsnorm" else x


def _like(weight: Tensor | None, x: Tensor) -> Tensor | None:
    return None if weight is None else weight.to(x.dtype)


class Attention(DeclaringModule):
    """Attention heads of one layer, each with its own W_Q, W_K, W_V, W_O."""

    W_K: Tensor
    W_V: Tensor
    b_K: Tensor | None
    b_V: Tensor | None

    def __init__(self, architecture: Architecture, n_heads: int) -> None:
        super().__init__()
        a = architecture
        self.positions, self.d_head = a.positions, a.head_width
        self.rotary = Rotary(a.rotary_width, a.rotary_base, a.rotary_pairs == "half-split")
        self.windowed, self.distances, self.top_k = a.windowed, a.visible_distances, a.kept_keys
        self.W_Q = declared("reading", n_heads, a.d_model, a.head_width, head_axis=0)
        n_shared = a.key_value_heads(n_heads)
        axis = 0 if n_shared == n_heads else None  # what heads share is no head's own
        self._keep("W_K", declared("reading", n_shared, a.d_model, a.head_width, head_axis=axis))
        self._keep("W_V", declared("reading", n_shared, a.d_model, a.value_width, head_axis=axis))
        self.W_O = declared("writing", n_heads, a.value_width, a.d_model, head_axis=0)
        relative = a.positions == "relative"
        self.position_bias = declared("position_bias", n_heads, a.n_ctx, head_axis=0, start=0) if relative else None
        learned = a.positions == "learned_shortformer"
        self.W_pos = declared("embedding", a.n_ctx, a.d_model, in_products=False) if learned else None
        biased = a.biases or a.qkv_biases
        self.b_Q = declared("vector", n_heads, a.head_width, head_axis=0, start=0) if biased else None
        for name, width in (("b_K", a.head_width), ("b_V", a.value_width)):
            self._keep(name, declared("vector", n_shared, width, head_axis=axis, start=0) if biased else None)
        self.b_O = declared("vector", a.d_model, start=0) if a.biases or a.output_biases else None
        kind = "rmsnorm" if a.qk_normalization else "none"
        self.q_norm = Norm(kind, a.head_width, a.epsilon_of(kind))
        self.k_norm = Norm(kind, a.head_width, a.epsilon_of(kind))
        self.gates: StaticGates | DynamicGates | None = None
        if a.gates != "none":
            self.gates = StaticGates(n_heads) if a.gates == "hard_concrete" else DynamicGates(n_heads, a.d_model)

    def queries_keys_values(
        self, x: Float[Tensor, "batch pos d_model"]
    ) -> tuple[
        Float[Tensor, "batch head pos d_head"],
        Float[Tensor, "batch head pos d_head"],
        Float[Tensor, "batch head pos d_value"],
    ]:
        """Project the stream, one matrix product for all heads and all three maps where they read the same."""
        x = x.to(self.W_Q.dtype)
        W_K, W_V, b_K, b_V = self.stored_keys_and_values()
        added = self.added_positions(x)
        if added is None:
            joined = torch.cat([_flat(self.W_Q), _flat(W_K), _flat(W_V)], dim=1)
            widths = [w.shape[0] * w.shape[2] for w in (self.W_Q, W_K, W_V)]
            q, k, v = (x @ joined).split(widths, dim=2)
        else:
            read = x + added
            q, k, v = read @ _flat(self.W_Q), read @ _flat(W_K), x @ _flat(W_V)
        q, k, v = (
            part.unflatten(2, (weight.shape[0], weight.shape[2])).transpose(1, 2)
            for part, weight in ((q, self.W_Q), (k, W_K), (v, W_V))
        )
        if self.b_Q is not None and b_K is not None and b_V is not None:
            q, k, v = q + self.b_Q[:, None], k + b_K[:, None], v + b_V[:, None]
        q, k = self.q_norm(q), self.k_norm(k)
        if self.positions == "rotary":
            q, k = self.rotary(q), self.rotary(k)
        return q, self.to_heads(k, dim=1), self.to_heads(v, dim=1)

    def stored_keys_and_values(self) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """W_K, W_V, b_K and b_V as they are stored: one for all heads that share it."""
        return self.W_K, self.W_V, self.b_K, self.b_V

    def to_heads(self, stored: Float[Tensor, "*shape"], dim: int = 0) -> Float[Tensor, "*expanded"]:
        """What is stored of keys or values, along their axis, as each head has it."""
        return stored

    def added_positions(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "pos d_model"] | None:
        """What shortformer's positions add to what queries and keys read; None with others."""
        if self.W_pos is not None:
            return self.W_pos[: x.shape[1]].to(x.dtype)
        return sinusoids(x.shape[1], x.shape[2], x) if self.positions == "shortformer" else None

    def position_scores(self, n: int) -> Float[Tensor, "*head q_pos k_pos"]:
        """What position alone adds to the scores: -inf where it hides a key, and the bias of relative positions."""
        if self.windowed:
            return relative_scores(at_every_distance(self.scores_by_distance(), self.distances.step, n))
        if self.position_bias is None:
            return causal_mask(n, self.W_Q)
        return relative_scores(self.position_bias[:, :n])

    def scores_by_distance(self) -> Float[Tensor, "head n_seen"]:
        """What each distance of a window adds to the scores, one head for all where that is nothing."""
        if self.position_bias is None:
            return self.W_Q.new_zeros(1, len(self.distances))
        return self.position_bias[:, self.distances.start : self.distances.stop : self.distances.step]

    def pattern(self, scores: Float[Tensor, "batch head q_pos k_pos"]) -> Float[Tensor, "batch head q_pos k_pos"]:
        """Attention pattern from the scores of queries and keys, q k / sqrt(d_head) of every pair."""
        scores = scores + self.position_scores(scores.shape[-1])
        return (scores if self.top_k is None else keep_top(scores, self.top_k)).softmax(dim=-1)

    def mix(
        self, x: Float[Tensor, "batch pos d_model"]
    ) -> tuple[Float[Tensor, "batch head q_pos k_pos"], Float[Tensor, "batch head pos d_value"]]:
        """Whole attention pattern, even where most of it is 0, and the values each head mixed by it, gated."""
        q, k, v = self.queries_keys_values(x)
        pattern = self.pattern((q * self.d_head**-0.5) @ k.transpose(2, 3))
        return pattern, self._gated(pattern @ v, x)

    def mix_fused(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch head pos d_value"]:
        """Values each head mixed, gated, by the fastest way there is: most keys that no query sees are left out."""
        q, k, v = self.queries_keys_values(x)
        scaled = q * self.d_head**-0.5
        if self.top_k is not None:
            z = self.pattern(scaled @ k.transpose(2, 3)) @ v  # all scores are needed to choose the highest
        elif self.windowed:
            z = windowed_attention(scaled, k, v, self.scores_by_distance(), self.distances.step)
        elif q.is_cuda:
            by_position = self.position_scores(q.shape[2]).expand(len(q), -1, -1, -1)
            z = F.scaled_dot_product_attention(q, k, v, attn_mask=by_position)
        else:
            z = full_attention(scaled, k, v, self.position_scores(q.shape[2]))
        return self._gated(z, x)

    def _keep(self, name: str, parameter: nn.Parameter | None) -> None:
        setattr(self, name, parameter)

    def _gated(self, z: Tensor, x: Tensor) -> Tensor:
        return z if self.gates is None else z * self.gates(x)[..., None].to(z.dtype)

    def write(self, z: Float[Tensor, "batch head pos d_value"]) -> Float[Tensor, "batch pos d_model"]:
        """What all heads together write to the stream."""
        out = z.transpose(1, 2).flatten(2) @ self.W_O.flatten(0, 1)
        return out if self.b_O is None else out + self.b_O


class GroupedAttention(Attention):
    """Attention in which groups of neighbouring heads share keys and values; W_K and the like are as each head has it.

    Source: Ainslie et al. 2023 (GQA).
    """

    W_K_shared: Tensor
    W_V_shared: Tensor
    b_K_shared: Tensor | None
    b_V_shared: Tensor | None

    @property
    def W_K(self) -> Float[Tensor, "head d_model d_head"]:  # type: ignore[override]
        """The map of each head's keys."""
        return self.to_heads(self.W_K_shared)

    @property
    def W_V(self) -> Float[Tensor, "head d_model d_value"]:  # type: ignore[override]
        """The map of each head's values."""
        return self.to_heads(self.W_V_shared)

    @property
    def b_K(self) -> Float[Tensor, "head d_head"] | None:  # type: ignore[override]
        """The bias of each head's keys."""
        return None if self.b_K_shared is None else self.to_heads(self.b_K_shared)

    @property
    def b_V(self) -> Float[Tensor, "head d_value"] | None:  # type: ignore[override]
        """The bias of each head's values."""
        return None if self.b_V_shared is None else self.to_heads(self.b_V_shared)

    def stored_keys_and_values(self) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """W_K, W_V, b_K and b_V as they are stored: one a group."""
        return self.W_K_shared, self.W_V_shared, self.b_K_shared, self.b_V_shared

    def to_heads(self, stored: Float[Tensor, "*shape"], dim: int = 0) -> Float[Tensor, "*expanded"]:
        """What is stored of keys or values, along the axis of groups, as each head has it."""
        return stored.repeat_interleave(self.W_Q.shape[0] // self.W_K_shared.shape[0], dim)

    def _keep(self, name: str, parameter: nn.Parameter | None) -> None:
        setattr(self, name + SHARED, parameter)


def _flat(weight: Float[Tensor, "head d_model width"]) -> Float[Tensor, "d_model heads_width"]:
    return weight.transpose(0, 1).flatten(1)


_gelu_tanh = partial(F.gelu, approximate="tanh")
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": _gelu_tanh,
    "swiglu": F.silu,
    "geglu": F.gelu,
    "geglu_tanh": _gelu_tanh,
}


class FeedForward(DeclaringModule):
    """Two maps with an activation between them; in a gated layer, a third map's activation multiplies the first.

    Source of gated layers: Shazeer 2020, GLU Variants Improve Transformer.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        a = architecture
        self.activation = ACTIVATIONS[a.feed_forward]
        self.W_in = declared("reading", a.d_model, a.mlp_width)
        self.W_gate = declared("reading", a.d_model, a.mlp_width) if a.gated_feed_forward else None
        self.W_out = declared("writing", a.mlp_width, a.d_model)
        self.b_in = declared("vector", a.mlp_width, start=0) if a.biases else None
        self.b_gate = declared("vector", a.mlp_width, start=0) if a.biases and a.gated_feed_forward else None
        self.b_out = declared("vector", a.d_model, start=0) if a.biases else None

    def forward(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        """What the layer writes to the stream."""
        hidden = self.hidden(x)
        return hidden @ self.W_out if self.b_out is None else hidden @ self.W_out + self.b_out

    def hidden(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos neuron"]:
        """What W_out reads: the neurons' activations."""
        x = x.to(self.W_in.dtype)
        read = x @ self.W_in if self.b_in is None else x @ self.W_in + self.b_in
        if self.W_gate is None:
            return self.activation(read)
        return self.activation(x @ self.W_gate if self.b_gate is None else x @ self.W_gate + self.b_gate) * read


class Layer(nn.Module):
    """Attention, then a feed-forward layer if there is one, each read from and written to the stream."""

    def __init__(self, architecture: Architecture, n_heads: int) -> None:
        super().__init__()
        a = architecture
        self.post, self.parallel = a.normalization_place == "post", a.parallel_sublayers
        shares = a.key_value_heads(n_heads) < n_heads
        self.attention = GroupedAttention(a, n_heads) if shares else Attention(a, n_heads)
        self.attention_norm = Norm(a.normalization, a.d_model, a.epsilon_of(a.normalization))
        self.feed_forward = FeedForward(a) if a.feed_forward != "none" else None
        kind = a.normalization if self.feed_forward else "none"
        self.feed_forward_norm = Norm(kind, a.d_model, a.epsilon_of(kind))

    def forward(
        self,
        x: Float[Tensor, "batch pos d_model"],
        mask: Float[Tensor, "head"] | None = None,
        fill: Tensor | None = None,
        gates: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch pos d_model"]:
        """The stream after this layer, by the fastest attention that the device has; its gates go into `gates`."""
        read = self.read(x)
        if gates is not None and self.attention.gates is not None:
            gates.append(self.attention.gates(read))
        return self.write(x, self.attention.mix_fused(read), mask, fill)[-1]

    def trace(
        self,
        x: Float[Tensor, "batch pos d_model"],
        mask: Float[Tensor, "head"] | None = None,
        fill: Tensor | None = None,
    ) -> LayerTrace:
        """Everything that the forward pass of this layer computes."""
        read, W_O = self.read(x), self.attention.W_O
        pattern, z = self.attention.mix(read)
        gates = None if self.attention.gates is None else self.attention.gates(read)
        z, attention_out, feed_forward_out, residual_out = self.write(x, z, mask, fill)
        return LayerTrace(x, pattern, gates, z, W_O, attention_out, feed_forward_out, residual_out)

    def read(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        """What the heads read of the stream."""
        return x if self.post else self.attention_norm(x)

    def write(
        self, x: Tensor, z: Tensor, mask: Tensor | None = None, fill: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        """Each head's z after the mask, what attention and feed-forward layer write, and the stream after that."""
        if mask is not None:
            mask = mask[:, None, None].to(z.dtype)
            z = z * mask if fill is None else z * mask + fill * (1 - mask)
        attention_out = self.attention.write(z)
        return z, attention_out, *self.after_attention(x, attention_out)

    def residual_mid(
        self, x: Float[Tensor, "batch pos d_model"], attention_out: Float[Tensor, "batch pos d_model"]
    ) -> Float[Tensor, "batch pos d_model"]:
        """The stream after attention has written and before the feed-forward layer does."""
        return self.attention_norm(x + attention_out) if self.post else x + attention_out

    def read_mid(
        self, x: Float[Tensor, "batch pos d_model"], mid: Float[Tensor, "batch pos d_model"]
    ) -> Float[Tensor, "batch pos d_model"]:
        """What the feed-forward layer reads of the stream: after attention has written, or beside it, before."""
        return mid if self.post else self.feed_forward_norm(x if self.parallel else mid)

    def after_attention(
        self, x: Float[Tensor, "batch pos d_model"], attention_out: Float[Tensor, "batch pos d_model"]
    ) -> tuple[Float[Tensor, "batch pos d_model"] | None, Float[Tensor, "batch pos d_model"]]:
        """What the feed-forward layer writes after attention has written, and the stream after both."""
        mid = self.residual_mid(x, attention_out)
        if self.feed_forward is None:
            return None, mid
        feed_forward_out = self.feed_forward(self.read_mid(x, mid))
        after = mid + feed_forward_out
        return feed_forward_out, self.feed_forward_norm(after) if self.post else after


class Transformer(DeclaringModule):
    """Embedding, layers, unembedding."""

    def __init__(self, architecture: Architecture, d_vocab: int) -> None:
        super().__init__()
        a = self.architecture = architecture
        self.d_vocab = d_vocab
        self.W_E = declared("embedding", d_vocab, a.d_model, in_products=False)  # it is the stream itself
        learned = a.positions == "learned"
        self.W_pos = declared("embedding", a.n_ctx, a.d_model, in_products=False) if learned else None
        layers = nn.ModuleList(Layer(a, n_heads) for n_heads in a.heads_per_layer)
        self.layers = cast("Sequence[Layer]", layers)  # it behaves as one
        final = a.normalization if a.normalization_place == "pre" else "none"
        self.final_norm = Norm(final, a.d_model, a.epsilon_of(final))
        self.W_U_free = None if a.tied_embeddings else declared("embedding", a.d_model, d_vocab)
        self.b_U = declared("vector", d_vocab, start=0) if a.biases else None

    @property
    def W_U(self) -> Float[Tensor, "d_model d_vocab"]:
        """The unembedding matrix: W_E transposed where embeddings are tied."""
        return self.W_E.T if self.W_U_free is None else self.W_U_free

    def initialize(self, generator: torch.Generator) -> "Transformer":
        """Draw every parameter that has no declared start at standard deviation 0.8 / sqrt(d_model)."""
        scale = 0.8 * self.architecture.d_model**-0.5
        for _, parameter, declaration in declared_parameters(self):
            if declaration.start is None:
                parameter.data.normal_(0, scale, generator=generator)
        return self

    def forward(
        self,
        tokens: Int[Tensor, "batch pos"],
        head_mask: HeadMask | None = None,
        fill: Fill | None = None,
        gates: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch pos d_vocab"]:
        """Logits of the next token.

        `head_mask` has one [head] tensor a layer that scales each head's z, and `fill` what makes up for it:
        z becomes mask z + (1 - mask) fill. Without `fill` that is zero. Each layer's gates are appended to `gates`.
        """
        return self.forward_from(self.embed(tokens), 0, head_mask, fill, gates)

    def forward_from(
        self,
        x: Float[Tensor, "batch pos d_model"],
        first_layer: int,
        head_mask: HeadMask | None = None,
        fill: Fill | None = None,
        gates: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch pos d_vocab"]:
        """Logits from the stream that some layer reads, the rest of a forward pass; masks are of all layers."""
        for i in range(first_layer, len(self.layers)):
            own: list[Tensor] | None = None if gates is None else []  # code compiled for one layer serves all
            x = self.layers[i](x, head_mask[i] if head_mask else None, fill[i] if fill else None, own)
            if gates is not None and own:
                gates += own
        return self.unembed(self.final_norm(x))

    def trace(
        self, tokens: Int[Tensor, "batch pos"], head_mask: HeadMask | None = None, fill: Fill | None = None
    ) -> Trace:
        """Everything that a forward pass computes: patterns, z, head outputs and the residual stream of every layer."""
        x = embedding = self.embed(tokens)
        layers = []
        for i, layer in enumerate(self.layers):
            layers.append(layer.trace(x, head_mask[i] if head_mask else None, fill[i] if fill else None))
            x = layers[-1].residual_out
        x = self.final_norm(x)
        return Trace(embedding, tuple(layers), x, self.unembed(x))

    def embed(self, tokens: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos d_model"]:
        """The stream before the first layer.

        Raises:
            ValueError: more positions than n_ctx.
        """
        n = tokens.shape[1]
        if n > self.architecture.n_ctx:
            raise ValueError(f"a sequence must fit n_ctx={self.architecture.n_ctx}, got {n} positions. Cut it shorter.")
        x = F.embedding(tokens, self.W_E)
        if self.W_pos is not None:
            return x + self.W_pos[:n]
        return x + sinusoids(n, x.shape[2], x) if self.architecture.positions == "sinusoidal" else x

    def unembed(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_vocab"]:
        """Logits of the final residual stream, after the final norm."""
        logits = x.to(self.W_U.dtype) @ self.W_U
        return logits if self.b_U is None else logits + self.b_U
