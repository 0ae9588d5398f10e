"""The transformer under study: weights by head, one forward pass, everything inside it returned by name.

Row vectors throughout: x is [pos, d_model] and maps act on the right (x @ W). An attention pattern is
[query position, key position] and its rows sum to 1. Elhage et al. 2021 use the transposes.

Matrix products run in the dtype of their weights and the residual stream in that of the embedding, so a model whose
other weights are bfloat16 keeps a float32 stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from headstream.models.architecture import Architecture
from headstream.models.attention_heads import Attention, GroupedAttention
from headstream.models.attention_patterns import soft_capped
from headstream.models.feed_forward_layer import FeedForward
from headstream.models.intervened_pass import IntervenedPass, LayerChange
from headstream.models.interventions import Interventions
from headstream.models.norms import Norm
from headstream.models.parameters import DeclaringModule, declared, declared_parameters
from headstream.models.positions import sinusoids

HeadMask = Sequence[Float[Tensor, "_"]]  # one number per head, one tensor per layer
Fill = Sequence[Float[Tensor, "... _ _ _"]]  # replaces masked z: [(batch,) head, pos or 1, d_value] per layer


@dataclass(frozen=True)
class LayerTrace:
    """Everything that one layer computed."""

    residual_in: Float[Tensor, "batch pos d_model"]
    pattern: Float[Tensor, "batch head q_pos k_pos"]
    gates: Float[Tensor, "batch head pos"] | None  # factors on each head's z, before the head mask
    z: Float[Tensor, "batch head pos d_value"]  # each head's mixed values, after gates and the head mask, before W_O
    W_O: Float[Tensor, "head d_value d_model"]
    attention_out: Float[Tensor, "batch pos d_model"]  # before the norm of outputs, if there is one
    feed_forward_out: Float[Tensor, "batch pos d_model"] | None  # likewise
    residual_out: Float[Tensor, "batch pos d_model"]

    @property
    def head_outputs(self) -> Float[Tensor, "batch head pos d_model"]:
        """Each head's output to the stream: z W_O (the layer's output bias belongs to no head)."""
        return self.z @ self.W_O


@dataclass(frozen=True)
class Trace:
    """Everything that one forward pass computed."""

    embedding: Float[Tensor, "batch pos d_model"]
    layers: tuple[LayerTrace, ...]
    residual_final: Float[Tensor, "batch pos d_model"]  # after the final norm, as W_U reads it
    logits: Float[Tensor, "batch pos d_vocab"]


class Layer(nn.Module):
    """Attention, then a feed-forward layer if there is one, each read from and written to the stream."""

    def __init__(self, architecture: Architecture, n_heads: int) -> None:
        super().__init__()
        a = architecture
        place = a.normalization_place
        self.post, self.parallel = place == "post", a.parallel_sublayers
        shares = a.key_value_heads(n_heads) < n_heads
        self.attention = GroupedAttention(a, n_heads) if shares else Attention(a, n_heads)
        self.feed_forward = FeedForward(a) if a.feed_forward != "none" else None

        def norm(*, used: bool) -> Norm:
            kind = a.normalization if used else "none"
            return Norm(kind, a.d_model, a.epsilon_of(kind), offset=a.norm_offset)

        has_feed_forward, of_output = self.feed_forward is not None, place in ("output", "both")
        self.attention_norm = norm(used=place != "output")
        self.feed_forward_norm = norm(used=place != "output" and has_feed_forward)
        self.attention_out_norm = norm(used=of_output)
        self.feed_forward_out_norm = norm(used=of_output and has_feed_forward)

    def forward(
        self,
        x: Float[Tensor, "batch pos d_model"],
        mask: Float[Tensor, "head"] | None = None,
        fill: Tensor | None = None,
        gates: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch pos d_model"]:
        """The stream after this layer, by the device's fastest attention; the layer's gates are appended to `gates`."""
        read = self.read(x)
        if gates is not None and self.attention.gates is not None:
            gates.append(self.attention.gates(read))
        return self.write(x, self.attention.mix_fused(read), mask, fill)[-1]

    def trace(
        self,
        x: Float[Tensor, "batch pos d_model"],
        mask: Float[Tensor, "head"] | None = None,
        fill: Tensor | None = None,
        change: LayerChange | None = None,
    ) -> LayerTrace:
        """Everything that the forward pass of this layer computes; `change` says what is done to its heads."""
        parts = self.parts(x, mask, fill, change)
        pattern, gates, z, attention_out, feed_forward_out, residual_out = parts
        return LayerTrace(x, pattern, gates, z, self.attention.W_O, attention_out, feed_forward_out, residual_out)

    def parts(
        self,
        x: Float[Tensor, "batch pos d_model"],
        mask: Float[Tensor, "head"] | None,
        fill: Tensor | None,
        change: LayerChange | None,
    ) -> tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor | None, Tensor]:
        """Of a layer's trace all that is computed: pattern, gates, z, both outputs, and the stream after them."""
        read = self.read(x)
        if change is None:
            pattern, z = self.attention.mix(read)
        else:
            pattern, z = self.attention.mix_changed(read, change.projected(self, x, read), change)
        gates = None if self.attention.gates is None else self.attention.gates(read)
        return pattern, gates, *self.write(x, z, mask, fill)

    def read(self, x: Float[Tensor, "*batch pos d_model"]) -> Float[Tensor, "*batch pos d_model"]:
        """The heads' input: the stream, after the norm if that comes first."""
        return x if self.post else self.attention_norm(x)

    def write(
        self, x: Tensor, z: Tensor, mask: Tensor | None = None, fill: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        """Each head's z after the mask, the outputs of attention and feed-forward layer, and the stream after them."""
        if mask is not None:
            mask = mask[:, None, None].to(z.dtype)
            z = z * mask if fill is None else z * mask + fill * (1 - mask)
        attention_out = self.attention.write(z)
        return z, attention_out, *self.after_attention(x, attention_out)

    def residual_mid(
        self, x: Float[Tensor, "batch pos d_model"], attention_out: Float[Tensor, "batch pos d_model"]
    ) -> Float[Tensor, "batch pos d_model"]:
        """The stream after attention and before the feed-forward layer."""
        mid = x + self.attention_out_norm(attention_out)
        return self.attention_norm(mid) if self.post else mid

    def read_mid(
        self, x: Float[Tensor, "batch pos d_model"], mid: Float[Tensor, "batch pos d_model"]
    ) -> Float[Tensor, "batch pos d_model"]:
        """The feed-forward layer's input: from the stream after attention or, with parallel sublayers, before it."""
        return mid if self.post else self.feed_forward_norm(x if self.parallel else mid)

    def after_attention(
        self, x: Float[Tensor, "batch pos d_model"], attention_out: Float[Tensor, "batch pos d_model"]
    ) -> tuple[Float[Tensor, "batch pos d_model"] | None, Float[Tensor, "batch pos d_model"]]:
        """The feed-forward layer's output, given that of attention, and the stream after both."""
        mid = self.residual_mid(x, attention_out)
        if self.feed_forward is None:
            return None, mid
        feed_forward_out = self.feed_forward(self.read_mid(x, mid))
        return feed_forward_out, self.residual_after(mid, feed_forward_out)

    def residual_after(
        self, mid: Float[Tensor, "batch pos d_model"], feed_forward_out: Float[Tensor, "batch pos d_model"]
    ) -> Float[Tensor, "batch pos d_model"]:
        """The stream after the feed-forward layer."""
        after = mid + self.feed_forward_out_norm(feed_forward_out)
        return self.feed_forward_norm(after) if self.post else after


class Transformer(DeclaringModule):
    """Embedding, layers, unembedding.

    With interventions, `forward` and `trace` are those of the model to whose heads they are done; whatever reads its
    weights, or runs a part of it, knows nothing of them.
    """

    interventions: Interventions | None = None

    def __init__(self, architecture: Architecture, d_vocab: int) -> None:
        super().__init__()
        a = self.architecture = architecture
        self.d_vocab = d_vocab
        self.W_E = declared("embedding", d_vocab, a.d_model, in_products=False)  # it is the stream itself
        learned = a.positions == "learned"
        self.W_pos = declared("embedding", a.n_ctx, a.d_model, in_products=False) if learned else None
        layers = nn.ModuleList(Layer(a.of_layer(i), n_heads) for i, n_heads in enumerate(a.heads_per_layer))
        self.layers = cast("Sequence[Layer]", layers)  # it behaves as one
        final = "none" if a.normalization_place == "post" else a.normalization
        self.final_norm = Norm(final, a.d_model, a.epsilon_of(final), offset=a.norm_offset)
        self.W_U_free = None if a.tied_embeddings else declared("embedding", a.d_model, d_vocab)
        self.b_U = declared("vector", d_vocab, start=0) if a.biases else None

    @property
    def W_U(self) -> Float[Tensor, "d_model d_vocab"]:
        """The unembedding matrix: W_E transposed if embeddings are tied."""
        return self.W_E.T if self.W_U_free is None else self.W_U_free

    @property
    def token_vectors(self) -> Float[Tensor, "d_vocab d_model"]:
        """What each token writes to the stream: W_E, scaled if the architecture says so."""
        scale = self.architecture.embedding_scale
        return self.W_E if scale == 1 else self.W_E * scale

    def initialize(self, generator: torch.Generator) -> "Transformer":
        """Draw every parameter without a declared start from a normal of standard deviation 0.8 / sqrt(d_model)."""
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

        `head_mask` has one [head] tensor per layer that scales each head's z, and `fill` replaces the rest: z becomes
        mask z + (1 - mask) fill, where no `fill` means zero. Each layer's gates are appended to `gates`.
        """
        if self.interventions:
            trace = self.trace(tokens, head_mask, fill)
            if gates is not None:
                gates += [layer.gates for layer in trace.layers if layer.gates is not None]
            return trace.logits
        return self.forward_from(self.embed(tokens), 0, head_mask, fill, gates)

    def forward_from(
        self,
        x: Float[Tensor, "batch pos d_model"],
        first_layer: int,
        head_mask: HeadMask | None = None,
        fill: Fill | None = None,
        gates: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch pos d_vocab"]:
        """Logits from the stream that a layer reads: the rest of a forward pass; masks are those of all layers."""
        for i in range(first_layer, len(self.layers)):
            own: list[Tensor] | None = None if gates is None else []  # so that code compiled for one layer serves all
            x = self.layers[i](x, head_mask[i] if head_mask else None, fill[i] if fill else None, own)
            if gates is not None and own:
                gates += own
        return self.unembed(self.final_norm(x))

    def trace(
        self, tokens: Int[Tensor, "batch pos"], head_mask: HeadMask | None = None, fill: Fill | None = None
    ) -> Trace:
        """Everything that a forward pass computes: patterns, z, head outputs and the residual stream of every layer."""
        x = embedding = self.embed(tokens)
        intervened = IntervenedPass(self.interventions, tokens) if self.interventions else None
        layers: list[LayerTrace] = []
        for i, layer in enumerate(self.layers):
            change = intervened.at(i) if intervened else None
            layers.append(layer.trace(x, head_mask[i] if head_mask else None, fill[i] if fill else None, change))
            if intervened:
                intervened.passed(layers[-1])
            x = layers[-1].residual_out
        x = self.final_norm(x)
        return Trace(embedding, tuple(layers), x, self.unembed(x))

    def embed(self, tokens: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos d_model"]:
        """The stream before the first layer.

        Raises:
            ValueError: there are more positions than n_ctx.
        """
        n = tokens.shape[1]
        if n > self.architecture.n_ctx:
            raise ValueError(f"a sequence must fit n_ctx={self.architecture.n_ctx}, got {n} positions. Shorten it.")
        x = self.embed_tokens(tokens)
        if self.W_pos is not None:
            return x + self.W_pos[:n]
        return x + sinusoids(n, x.shape[2], x) if self.architecture.positions == "sinusoidal" else x

    def embed_tokens(self, tokens: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos d_model"]:
        """The part of the stream before the first layer that depends on tokens."""
        x, scale = F.embedding(tokens, self.W_E), self.architecture.embedding_scale
        return x if scale == 1 else x * scale

    def unembed(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_vocab"]:
        """Logits from the final residual stream, after the final norm."""
        return self.capped(self.linear_logits(x))

    def linear_logits(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_vocab"]:
        """Logits before they are capped, if they are: sums over the parts of x."""
        logits = x.to(self.W_U.dtype) @ self.W_U
        return logits if self.b_U is None else logits + self.b_U

    def capped(self, logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Logits between the bounds of the architecture, if it has any."""
        return soft_capped(logits, self.architecture.logit_cap)
