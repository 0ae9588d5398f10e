"""A run with its attention patterns, gates and norm scales frozen at their true values: linear in the residual stream.

The stream is then a sum of parts that pass through the model independently. A model without norms is linear as it
stands; with norms the result is "linearised": exact for this run, and blind to changes of scale.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from headstream.models.attention_heads import Attention
from headstream.models.nodes import MLP, Head, Node, Terminal
from headstream.models.norms import Norm
from headstream.models.transformer import Layer, LayerTrace, Trace, Transformer

Sources = dict[Node, Float[Tensor, "batch pos d_model"]]


@dataclass(frozen=True)
class FrozenNorm:
    """A norm whose scale is frozen at its value in a run: a linear map, and a separate bias."""

    scale: Float[Tensor, "*batch width"] | None  # weight over standard deviation; None for no norm
    centred: bool
    bias: Float[Tensor, "width"] | None

    def __call__(self, part: Float[Tensor, "*parts width"]) -> Float[Tensor, "*parts width"]:
        """Apply the norm, without its bias, to a part of the vector that it normalised."""
        if self.scale is None:
            return part
        return (part - part.mean(-1, keepdim=True) if self.centred else part) * self.scale

    def backwards(self, reader: Float[Tensor, "*parts width"]) -> Float[Tensor, "*parts width"]:
        """Apply the transposed map: the vector that reads a part before the norm as `reader` reads it after."""
        if self.scale is None:
            return reader
        scaled = reader * self.scale
        return scaled - scaled.mean(-1, keepdim=True) if self.centred else scaled


NO_NORM = FrozenNorm(None, False, None)


@dataclass(frozen=True)
class FrozenLayer:
    """One layer as linear maps of parts of the stream; biases belong to no part."""

    attention: Attention
    trace: LayerTrace
    read: Float[Tensor, "batch pos d_model"]  # by its heads
    norm_before: FrozenNorm  # between the stream and its heads
    out_norm: FrozenNorm  # of what its heads write together
    norms_after: tuple[FrozenNorm, ...]  # that the whole stream passes on its way out
    feed_forward_written: Float[Tensor, "batch pos d_model"] | None  # to the stream, before those norms
    q_norm: FrozenNorm
    k_norm: FrozenNorm

    def queries(self, part: Float[Tensor, "*parts pos d_model"]) -> Float[Tensor, "*parts head pos d_head"]:
        """The contribution of a part of the stream to each head's queries."""
        return self._query(self.norm_before(part))

    def keys(self, part: Float[Tensor, "*parts pos d_model"]) -> Float[Tensor, "*parts head pos d_head"]:
        """The contribution of a part of the stream to each head's keys."""
        return self._key(self.norm_before(part))

    def values(self, part: Float[Tensor, "*parts pos d_model"]) -> Float[Tensor, "*parts head pos d_value"]:
        """The contribution of a part of the stream to each head's values."""
        return _by_head(self.norm_before(part), self.attention.W_V)

    def heads(self, part: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "head batch pos d_model"]:
        """Each head's output from a part of the stream, by its true pattern and gate, as of the end of the layer."""
        return self.carry(self.out_norm(torch.einsum("bhpv,hvd->hbpd", self._z(part), self.attention.W_O)))

    def all_heads(self, part: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        """The sum of all heads' outputs from a part of the stream."""
        return self.carry(self.out_norm(self._z(part).transpose(1, 2).flatten(2) @ self.attention.W_O.flatten(0, 1)))

    def carry(self, part: Float[Tensor, "*parts pos d_model"]) -> Float[Tensor, "*parts pos d_model"]:
        """Carry a part of the stream, heads' outputs included, to the end of the layer, through the norms there."""
        for norm in self.norms_after:
            part = norm(part)
        return part

    def written(self) -> Float[Tensor, "head batch pos d_model"]:
        """Each head's output from the whole stream, value biases included, as of the end of the layer."""
        return self.carry(self.out_norm(self.trace.head_outputs.transpose(0, 1)))

    def feed_forward(self) -> Float[Tensor, "batch pos d_model"] | None:
        """The feed-forward layer's output, frozen at its true value; None without such a layer."""
        out = self.feed_forward_written
        return self.norms_after[-1](out) if self.norms_after and out is not None else out

    def bias(self) -> Float[Tensor, "batch pos d_model"]:
        """The part that the layer's output bias and the norms after it add to the stream."""
        constant = torch.zeros_like(self.trace.residual_in)
        if self.attention.b_O is not None:
            constant = constant + self.attention.b_O
        constant = self.out_norm(constant)
        if self.out_norm.bias is not None:
            constant = constant + self.out_norm.bias
        for norm in self.norms_after:
            constant = norm(constant) if norm.bias is None else norm(constant) + norm.bias
        return constant

    def value_bias(self) -> Float[Tensor, "batch pos d_model"]:
        """The heads' gated output that doesn't depend on what they attend to, since rows of a pattern sum to 1."""
        a = self.attention
        z = a.W_V.new_zeros(a.W_V.shape[0], a.W_V.shape[2])
        if self.norm_before.bias is not None:
            z = z + self.norm_before.bias @ a.W_V
        if a.b_V is not None:
            z = z + a.b_V
        written = torch.einsum("hv,hvd->hd", z, a.W_O)
        if self.trace.gates is None:
            return self.carry(self.out_norm(written.sum(0).expand_as(self.trace.residual_in)))
        return self.carry(self.out_norm(torch.einsum("bhp,hd->bpd", self.trace.gates, written)))

    def query_and_key_sources(
        self, sources: Sources
    ) -> tuple[dict[Node, Float[Tensor, "batch head pos d_head"]], dict[Node, Float[Tensor, "batch head pos d_head"]]]:
        """Queries and keys by the node that wrote their input; shortformer's sinusoids count as the position's."""
        a = self.attention
        read = {node: self.norm_before(part) for node, part in sources.items()}
        if self.norm_before.bias is not None:
            read[Terminal.BIAS] = read[Terminal.BIAS] + self.norm_before.bias
        if (added := a.added_positions(self.trace.residual_in)) is not None:
            read[Terminal.POSITION] = added.expand_as(self.trace.residual_in)
        queries, keys = ({node: side(part) for node, part in read.items()} for side in (self._query, self._key))
        if a.b_Q is not None and a.b_K is not None:
            bias = Terminal.BIAS
            queries[bias] = queries[bias] + self._turn(self.q_norm(a.b_Q[:, None].expand_as(queries[bias])))
            keys[bias] = keys[bias] + self._keyed(a.b_K[:, None].expand_as(keys[bias]))
        return queries, keys

    def _z(self, part: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch head pos d_value"]:
        z = self.trace.pattern @ self.values(part)
        return z if self.trace.gates is None else z * self.trace.gates[..., None]

    def _query(self, read: Tensor) -> Tensor:
        return self._turn(self.q_norm(_by_head(read, self.attention.W_Q)))

    def _key(self, read: Tensor) -> Tensor:
        return self._keyed(_by_head(read, self.attention.W_K))

    def _keyed(self, part: Tensor) -> Tensor:
        return self._turn(self.attention.smeared(self.k_norm(part)))

    def _turn(self, x: Tensor) -> Tensor:
        return self.attention.rotary(x) if self.attention.positions == "rotary" else x


@dataclass(frozen=True)
class FrozenRun:
    """A forward pass as linear maps of parts of the stream."""

    model: Transformer
    tokens: Int[Tensor, "batch pos"]
    trace: Trace
    layers: tuple[FrozenLayer, ...]
    final: FrozenNorm

    def carry(self, part: Float[Tensor, "*parts pos d_model"], after_layer: int) -> Float[Tensor, "*parts pos d_model"]:
        """Carry a part of the stream after a layer directly to W_U, past later heads."""
        for layer in self.layers[after_layer + 1 :]:
            part = layer.carry(part)
        return self.final(part)

    def sources(self) -> tuple[Sources, ...]:
        """The stream that each layer reads, and finally W_U, each as a sum of nodes' outputs."""
        a, token = self.model.architecture, self.model.embed_tokens(self.tokens)
        parts: Sources = {Terminal.EMBEDDING: token}
        if a.positions in ("learned", "sinusoidal"):
            parts[Terminal.POSITION] = self.trace.embedding - token
        if a.has_biases or a.normalization == "layernorm":
            parts[Terminal.BIAS] = torch.zeros_like(token)
        read = [parts]
        for i, layer in enumerate(self.layers):
            parts = {node: layer.carry(part) for node, part in parts.items()}
            parts |= {Head(i, head): written for head, written in enumerate(layer.written())}
            if (feed_forward := layer.feed_forward()) is not None:
                parts[MLP(i)] = feed_forward
            if Terminal.BIAS in parts:
                parts[Terminal.BIAS] = parts[Terminal.BIAS] + layer.bias()
            read.append(parts)
        read[-1] = {node: self.final(part) for node, part in parts.items()}
        if self.final.bias is not None:
            read[-1][Terminal.BIAS] = read[-1][Terminal.BIAS] + self.final.bias
        return tuple(read)

    def direct_logits(self, targets: Int[Tensor, "batch pos"]) -> list[Float[Tensor, "batch head pos"]]:
        """Each head's direct part of one token's logit per position, uncapped, less its mean over the vocabulary."""
        reads = self.reads_of_z(targets)
        return [(layer.trace.z * own).sum(-1) for layer, own in zip(self.layers, reads, strict=True)]

    def reads_of_z(self, targets: Int[Tensor, "batch pos"]) -> list[Float[Tensor, "batch head pos d_value"]]:
        """The direction of each head's z that adds to the logit of one token per position, past later layers."""
        W_U = self.model.W_U
        read = self.final.backwards(F.embedding(targets, (W_U - W_U.mean(1, keepdim=True)).T))
        by_layer = []
        for layer in reversed(self.layers):
            for norm in reversed(layer.norms_after):
                read = norm.backwards(read)
            W_O = layer.trace.W_O
            own = layer.out_norm.backwards(read)
            by_layer.append((own @ W_O.flatten(0, 1).T).unflatten(2, W_O.shape[:2]).transpose(1, 2))
        return by_layer[::-1]


def freeze_norm(norm: Norm, x: Float[Tensor, "*batch width"]) -> FrozenNorm:
    """Freeze a norm as it acted on x."""
    if norm.weight is None:
        return NO_NORM
    return FrozenNorm(norm.scale(x), norm.kind == "layernorm", norm.bias)


def freeze_run(model: Transformer, tokens: Int[Tensor, "batch pos"]) -> FrozenRun:
    """Run the model and freeze its patterns and norm scales."""
    return freeze_trace(model, tokens, model.trace(tokens))


def freeze_trace(model: Transformer, tokens: Int[Tensor, "batch pos"], trace: Trace) -> FrozenRun:
    """Freeze the patterns and norm scales of a run."""
    layers = tuple(freeze_layer(layer, traced) for layer, traced in zip(model.layers, trace.layers, strict=True))
    stream = trace.layers[-1].residual_out if trace.layers else trace.embedding
    return FrozenRun(model, tokens, trace, layers, freeze_norm(model.final_norm, stream))


def freeze_layer(layer: Layer, traced: LayerTrace) -> FrozenLayer:
    """Freeze the patterns and norm scales of a layer in a run."""
    a, x, before = layer.attention, traced.residual_in, NO_NORM
    after: tuple[FrozenNorm, ...] = ()
    if layer.post:
        after = (freeze_norm(layer.attention_norm, x + traced.attention_out),)
        if traced.feed_forward_out is not None:
            stream = layer.residual_mid(x, traced.attention_out) + traced.feed_forward_out
            after = (*after, freeze_norm(layer.feed_forward_norm, stream))
    else:
        before = freeze_norm(layer.attention_norm, x)
    read, out_norm = layer.read(x), freeze_norm(layer.attention_out_norm, traced.attention_out)
    out = traced.feed_forward_out
    written = None if out is None else layer.feed_forward_out_norm(out)
    return FrozenLayer(a, traced, read, before, out_norm, after, written, *_freeze_query_and_key_norms(a, read))


def _freeze_query_and_key_norms(
    a: Attention, read: Float[Tensor, "batch pos d_model"]
) -> tuple[FrozenNorm, FrozenNorm]:
    if a.q_norm.kind == a.k_norm.kind == "none":
        return NO_NORM, NO_NORM
    added = a.added_positions(read)
    positioned = read if added is None else read + added
    q, k = _by_head(positioned, a.W_Q), _by_head(positioned, a.W_K)
    if a.b_Q is not None and a.b_K is not None:
        q, k = q + a.b_Q[:, None], k + a.b_K[:, None]
    return freeze_norm(a.q_norm, q), freeze_norm(a.k_norm, k)


def _by_head(x: Tensor, weight: Tensor) -> Tensor:
    return torch.einsum("...pd,hdw->...hpw", x, weight)
