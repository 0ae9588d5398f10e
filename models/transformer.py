"""The transformer under study: weights by head, one forward pass, everything inside it returned by name.

Row vectors throughout: x is [pos, d_model] and maps act on the right (x @ W). An attention pattern is
[query position, key position] and its rows sum to 1. Elhage et al. 2021 write the transposes.

Matrix products run in the dtype of their weights and the residual stream in that of the embedding, so a model whose
other weights are bfloat16 keeps a float32 stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from models.architecture import Architecture

QUERY_BLOCKS, MIN_QUERY_BLOCK = 4, 32

HeadMask = Sequence[Float[Tensor, "_"]]  # one number a head, a tensor a layer
Fill = Sequence[Float[Tensor, "... _ _ _"]]  # takes the place of masked z: [(batch,) head, pos or 1, d_value] a layer


@dataclass(frozen=True)
class LayerTrace:
    """What one layer computed."""

    residual_in: Float[Tensor, "batch pos d_model"]
    pattern: Float[Tensor, "batch head q_pos k_pos"]
    z: Float[Tensor, "batch head pos d_value"]  # what each head mixed, after the head mask, before W_O
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


def causal_mask(n: int, like: Tensor) -> Float[Tensor, "q_pos k_pos"]:
    """0 where a key is visible, -inf where it lies in the future."""
    return torch.full((n, n), float("-inf"), dtype=like.dtype, device=like.device).triu(1)


@torch.library.custom_op("headstream::relative_scores", mutates_args=())
def relative_scores(bias: Tensor) -> Tensor:
    """bias[q - k] of a bias [head, distance] where k <= q, -inf in the future: [head, q_pos, k_pos].

    Each row of the result is a window of one cycle of 2n numbers, moved by one from row to row; repeating the cycle and
    cutting its rows one number shorter moves it. An operator of its own, or a compiler would work out these places
    anew for every sequence of a batch.
    """
    n_heads, n = bias.shape
    future = bias.new_full((n_heads, n), float("-inf"))
    cycle = torch.cat([bias[:, :1], future, bias[:, 1:].flip(1)], dim=1)  # cycle[(k - q) mod 2n]
    rows = cycle.repeat(1, n)[:, : n * (2 * n - 1)].view(n_heads, n, 2 * n - 1)
    return rows[:, :, :n].contiguous()


@relative_scores.register_fake
def _(bias: Tensor) -> Tensor:
    n_heads, n = bias.shape
    return bias.new_empty(n_heads, n, n)


@torch.library.custom_op("headstream::sum_by_distance", mutates_args=())
def sum_by_distance(scores: Tensor) -> Tensor:
    """The way back of `relative_scores`: sums over pairs of one distance, [head, distance]."""
    n_heads, n = scores.shape[:2]
    rows = F.pad(scores, (0, n - 1)).flatten(1)
    cycle = F.pad(rows, (0, n)).view(n_heads, n, 2 * n).sum(dim=1)
    return torch.cat([cycle[:, :1], cycle[:, n + 1 :].flip(1)], dim=1)


@sum_by_distance.register_fake
def _(scores: Tensor) -> Tensor:
    return scores.new_empty(scores.shape[:2])


relative_scores.register_autograd(lambda context, gradient: sum_by_distance(gradient))


def sinusoids(n: int, width: int, like: Tensor) -> Float[Tensor, "pos width"]:
    """Sine and cosine at geometrically spaced wavelengths. Source: Vaswani et al. 2017, 3.5."""
    dtype = torch.promote_types(like.dtype, torch.float32)  # bfloat16 can't count positions
    position = torch.arange(n, dtype=dtype, device=like.device)[:, None]
    rate = 10_000 ** (-torch.arange(0, width, 2, dtype=dtype, device=like.device) / width)
    return torch.stack([(position * rate).sin(), (position * rate).cos()], dim=-1).flatten(1)[:, :width].to(like.dtype)


def rotate(x: Float[Tensor, "*batch pos d_head"]) -> Float[Tensor, "*batch pos d_head"]:
    """Turn each pair of coordinates by an angle that grows with position. Source: Su et al. 2021 (RoPE)."""
    sin, cos = sinusoids(x.shape[-2], x.shape[-1], x).unflatten(1, (-1, 2)).unbind(-1)
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


class Norm(nn.Module):
    """LayerNorm, RMSNorm or nothing, by the architecture's choice."""

    def __init__(self, kind: str, width: int) -> None:
        super().__init__()
        self.kind = kind
        self.weight = nn.Parameter(torch.ones(width)) if kind != "none" else None
        self.bias = nn.Parameter(torch.zeros(width)) if kind == "layernorm" else None

    def forward(self, x: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch width"]:
        """Normalise the last axis."""
        if self.kind == "layernorm":
            return F.layer_norm(x, x.shape[-1:], _like(self.weight, x), _like(self.bias, x))
        return F.rms_norm(x, x.shape[-1:], _like(self.weight, x), eps=1e-6) if self.kind == "rmsnorm" else x


def _like(weight: Tensor | None, x: Tensor) -> Tensor | None:
    return None if weight is None else weight.to(x.dtype)


class Attention(nn.Module):
    """Attention heads of one layer, each with its own W_Q, W_K, W_V, W_O."""

    def __init__(self, architecture: Architecture, n_heads: int) -> None:
        super().__init__()
        a = architecture
        self.positions, self.d_head = a.positions, a.head_width
        self.W_Q = nn.Parameter(torch.empty(n_heads, a.d_model, a.head_width))
        self.W_K = nn.Parameter(torch.empty(n_heads, a.d_model, a.head_width))
        self.W_V = nn.Parameter(torch.empty(n_heads, a.d_model, a.value_width))
        self.W_O = nn.Parameter(torch.empty(n_heads, a.value_width, a.d_model))
        relative = a.positions == "relative"
        self.position_bias = nn.Parameter(torch.zeros(n_heads, a.n_ctx)) if relative else None
        self.b_Q = nn.Parameter(torch.zeros(n_heads, a.head_width)) if a.biases else None
        self.b_K = nn.Parameter(torch.zeros(n_heads, a.head_width)) if a.biases else None
        self.b_V = nn.Parameter(torch.zeros(n_heads, a.value_width)) if a.biases else None
        self.b_O = nn.Parameter(torch.zeros(a.d_model)) if a.biases or a.output_biases else None
        self.q_norm = Norm("rmsnorm" if a.qk_normalization else "none", a.head_width)
        self.k_norm = Norm("rmsnorm" if a.qk_normalization else "none", a.head_width)

    def queries_keys_values(
        self, x: Float[Tensor, "batch pos d_model"]
    ) -> tuple[
        Float[Tensor, "batch head pos d_head"],
        Float[Tensor, "batch head pos d_head"],
        Float[Tensor, "batch head pos d_value"],
    ]:
        """Project the stream, one matrix product for all heads and all three maps where they read the same."""
        x = x.to(self.W_Q.dtype)
        if self.positions != "shortformer":
            joined = torch.cat([_flat(self.W_Q), _flat(self.W_K), _flat(self.W_V)], dim=1)
            widths = [w.shape[0] * w.shape[2] for w in (self.W_Q, self.W_K, self.W_V)]
            q, k, v = (x @ joined).split(widths, dim=2)
        else:
            read = x + sinusoids(x.shape[1], x.shape[2], x)
            q, k, v = read @ _flat(self.W_Q), read @ _flat(self.W_K), x @ _flat(self.W_V)
        n_heads = self.W_Q.shape[0]
        q, k = (part.unflatten(2, (n_heads, self.d_head)).transpose(1, 2) for part in (q, k))
        v = v.unflatten(2, (n_heads, self.W_V.shape[2])).transpose(1, 2)
        if self.b_Q is not None and self.b_K is not None and self.b_V is not None:
            q, k, v = q + self.b_Q[:, None], k + self.b_K[:, None], v + self.b_V[:, None]
        q, k = self.q_norm(q), self.k_norm(k)
        return (rotate(q), rotate(k), v) if self.positions == "rotary" else (q, k, v)

    def position_scores(self, n: int) -> Float[Tensor, "*head q_pos k_pos"]:
        """What position alone adds to the scores: -inf in the future, and the bias of relative positions."""
        if self.position_bias is None:
            return causal_mask(n, self.W_Q)
        return relative_scores(self.position_bias[:, :n])

    def scores(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch head q_pos k_pos"]:
        """Pre-softmax attention scores."""
        q, k, _ = self.queries_keys_values(x)
        return q @ k.transpose(2, 3) * self.d_head**-0.5 + self.position_scores(x.shape[1])

    def mix(
        self, x: Float[Tensor, "batch pos d_model"]
    ) -> tuple[Float[Tensor, "batch head q_pos k_pos"], Float[Tensor, "batch head pos d_value"]]:
        """Attention pattern, and the values each head mixed by it. Sparse patterns would go here."""
        q, k, v = self.queries_keys_values(x)
        scores = (q * self.d_head**-0.5) @ k.transpose(2, 3) + self.position_scores(x.shape[1])
        pattern = scores.softmax(dim=-1)
        return pattern, pattern @ v

    def mix_fused(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch head pos d_value"]:
        """The mixed values alone: by torch's fused attention on a GPU, by blocks of queries on a CPU.

        A block of queries forms no scores with keys in its future, which is nearly half of them.
        """
        q, k, v = self.queries_keys_values(x)
        by_position = self.position_scores(x.shape[1])
        if x.is_cuda:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=by_position.expand(len(q), -1, -1, -1))
        q, mixed = q * self.d_head**-0.5, []
        block = max(MIN_QUERY_BLOCK, -(-x.shape[1] // QUERY_BLOCKS))
        for start in range(0, x.shape[1], block):
            rows, seen = slice(start, start + block), slice(0, start + block)
            scores = q[:, :, rows] @ k[:, :, seen].transpose(2, 3) + by_position[..., rows, seen]
            mixed.append(scores.softmax(dim=-1) @ v[:, :, seen])
        return torch.cat(mixed, dim=2)

    def write(self, z: Float[Tensor, "batch head pos d_value"]) -> Float[Tensor, "batch pos d_model"]:
        """What all heads together write to the stream."""
        out = z.transpose(1, 2).flatten(2) @ self.W_O.flatten(0, 1)
        return out if self.b_O is None else out + self.b_O


def _flat(weight: Float[Tensor, "head d_model width"]) -> Float[Tensor, "d_model heads_width"]:
    return weight.transpose(0, 1).flatten(1)


class FeedForward(nn.Module):
    """Two maps with an activation between them."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        a = architecture
        self.activation = F.relu if a.feed_forward == "relu" else F.gelu
        self.W_in = nn.Parameter(torch.empty(a.d_model, a.mlp_width))
        self.W_out = nn.Parameter(torch.empty(a.mlp_width, a.d_model))
        self.b_in = nn.Parameter(torch.zeros(a.mlp_width)) if a.biases else None
        self.b_out = nn.Parameter(torch.zeros(a.d_model)) if a.biases else None

    def forward(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        """What the layer writes to the stream."""
        x = x.to(self.W_in.dtype)
        hidden = self.activation(x @ self.W_in if self.b_in is None else x @ self.W_in + self.b_in)
        return hidden @ self.W_out if self.b_out is None else hidden @ self.W_out + self.b_out


class Layer(nn.Module):
    """Attention, then a feed-forward layer if there is one, each read from and written to the stream."""

    def __init__(self, architecture: Architecture, n_heads: int) -> None:
        super().__init__()
        a = architecture
        self.post = a.normalization_place == "post"
        self.attention = Attention(a, n_heads)
        self.attention_norm = Norm(a.normalization, a.d_model)
        self.feed_forward = FeedForward(a) if a.feed_forward != "none" else None
        self.feed_forward_norm = Norm(a.normalization if self.feed_forward else "none", a.d_model)

    def forward(
        self,
        x: Float[Tensor, "batch pos d_model"],
        mask: Float[Tensor, "head"] | None = None,
        fill: Tensor | None = None,
    ) -> Float[Tensor, "batch pos d_model"]:
        """The stream after this layer, by the fastest attention that the device has."""
        return self.write(x, self.attention.mix_fused(self.read(x)), mask, fill)[-1]

    def trace(
        self,
        x: Float[Tensor, "batch pos d_model"],
        mask: Float[Tensor, "head"] | None = None,
        fill: Tensor | None = None,
    ) -> LayerTrace:
        """The same pass with everything inside it returned."""
        pattern, z = self.attention.mix(self.read(x))
        z, attention_out, feed_forward_out, residual_out = self.write(x, z, mask, fill)
        return LayerTrace(x, pattern, z, self.attention.W_O, attention_out, feed_forward_out, residual_out)

    def read(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        """What the heads read of the stream."""
        return x if self.post else self.attention_norm(x)

    def write(
        self, x: Tensor, z: Tensor, mask: Tensor | None = None, fill: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        """Mixed values after the mask, what attention and feed-forward layer write of them, the stream after that."""
        if mask is not None:
            mask = mask[:, None, None].to(z.dtype)
            z = z * mask if fill is None else z * mask + fill * (1 - mask)
        attention_out = self.attention.write(z)
        x = self.attention_norm(x + attention_out) if self.post else x + attention_out
        if self.feed_forward is None:
            return z, attention_out, None, x
        feed_forward_out = self.feed_forward(x if self.post else self.feed_forward_norm(x))
        x = self.feed_forward_norm(x + feed_forward_out) if self.post else x + feed_forward_out
        return z, attention_out, feed_forward_out, x


class Transformer(nn.Module):
    """Embedding, layers, unembedding."""

    def __init__(self, architecture: Architecture, d_vocab: int) -> None:
        super().__init__()
        a = self.architecture = architecture
        self.d_vocab = d_vocab
        self.W_E = nn.Parameter(torch.empty(d_vocab, a.d_model))
        self.W_pos = nn.Parameter(torch.empty(a.n_ctx, a.d_model)) if a.positions == "learned" else None
        self.layers = nn.ModuleList(Layer(a, n_heads) for n_heads in a.heads_per_layer)
        final = a.normalization if a.normalization_place == "pre" else "none"
        self.final_norm = Norm(final, a.d_model)
        self.W_U_free = None if a.tied_embeddings else nn.Parameter(torch.empty(a.d_model, d_vocab))
        self.b_U = nn.Parameter(torch.zeros(d_vocab)) if a.biases else None

    @property
    def W_U(self) -> Float[Tensor, "d_model d_vocab"]:
        """Unembedding."""
        return self.W_E.T if self.W_U_free is None else self.W_U_free

    def initialize(self, generator: torch.Generator) -> "Transformer":
        """Draw every matrix at standard deviation 0.8 / sqrt(d_model); norms stay 1 and biases 0."""
        scale = 0.8 * self.architecture.d_model**-0.5
        for name, parameter in self.named_parameters():
            if name.rpartition(".")[2].startswith("W_"):
                parameter.data.normal_(0, scale, generator=generator)
        return self

    def forward(
        self, tokens: Int[Tensor, "batch pos"], head_mask: HeadMask | None = None, fill: Fill | None = None
    ) -> Float[Tensor, "batch pos d_vocab"]:
        """Logits of the next token.

        `head_mask` has one [head] tensor a layer that scales each head's z, and `fill` what makes up for it:
        z becomes mask z + (1 - mask) fill. Without `fill` that is zero.
        """
        return self.finish(self.embed(tokens), 0, head_mask, fill)

    def finish(
        self,
        x: Float[Tensor, "batch pos d_model"],
        first_layer: int,
        head_mask: HeadMask | None = None,
        fill: Fill | None = None,
    ) -> Float[Tensor, "batch pos d_vocab"]:
        """Logits of the stream that a layer reads: the rest of a forward pass. Masks are of all layers."""
        for i in range(first_layer, len(self.layers)):
            x = self.layers[i](x, head_mask[i] if head_mask else None, fill[i] if fill else None)
        return self.unembed(self.final_norm(x))

    def trace(
        self, tokens: Int[Tensor, "batch pos"], head_mask: HeadMask | None = None, fill: Fill | None = None
    ) -> Trace:
        """The same pass, with patterns, z, head outputs and the residual stream of every layer."""
        x = embedding = self.embed(tokens)
        layers = []
        for i, layer in enumerate(self.layers):
            assert isinstance(layer, Layer)
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
        """Logits of a final residual stream."""
        logits = x.to(self.W_U.dtype) @ self.W_U
        return logits if self.b_U is None else logits + self.b_U
