"""Runs of a model in which every reader has an input of its own: what each writer writes may be that of another run.

A reader's input is the stream of a run that is there already, the base, changed by what some writers write differently.
With norms after sublayers the stream is normalised anew, sublayer by sublayer, for each reader.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.models.known_options import KnownOptions, unknown_options
from headstream.models.norms import Norm
from headstream.models.prompts.graph import Level, PromptGraph
from headstream.models.transformer import Layer, Transformer

Stream = Float[Tensor, "*runs pos d_model"]


@dataclass(frozen=True)
class Sublayer:
    """The attention or feed-forward layer of a run: its output, biases included, and the writers that it is of."""

    writers: slice  # of the graph's
    output: Float[Tensor, "pair pos d_model"]
    norm_of_output: Norm  # before it is added to the stream, if there is one
    norm_after: Norm  # of the stream then, if there is one


class Earlier(NamedTuple):
    """What a layer's queries see before the positions of a run: keys and values, one for each head."""

    keys: Float[Tensor, "pair head earlier d_head"]
    values: Float[Tensor, "pair head earlier d_value"]

    @property
    def n(self) -> int:
        """Number of positions."""
        return self.keys.shape[2]

    def repeated(self, times: int) -> "Earlier":
        """The same for so many runs of the pairs."""
        return Earlier(self.keys.repeat(times, 1, 1, 1), self.values.repeat(times, 1, 1, 1))


class Projected(NamedTuple):
    """Products of what heads read with W_Q, W_K and W_V; of keys and values that are shared, one for each group."""

    q: Float[Tensor, "pair head pos d_head"]
    k: Float[Tensor, "pair group pos d_head"]
    v: Float[Tensor, "pair group pos d_value"]


@dataclass(frozen=True)
class BaseRun:
    """A run whose readers can be given other inputs: all of its positions, or those from some position on."""

    model: Transformer
    graph: PromptGraph
    embedding: Float[Tensor, "pair pos d_model"]
    written: Float[Tensor, "writer pair pos d_model"]  # by each writer to the stream
    sublayers: tuple[Sublayer, ...]  # in the order of levels
    streams: tuple[Float[Tensor, "pair pos d_model"], ...]  # that each level reads
    projected: tuple[Projected, ...]  # of each layer
    earlier: tuple[Earlier, ...]  # of each layer
    logits: Float[Tensor, "pair d_vocab"]  # after the last token

    def inputs(
        self, level: Level, mask: Float[Tensor, "run writer"], changes: Float[Tensor, "writer pair pos d_model"]
    ) -> Float[Tensor, "run pair pos d_model"]:
        """The stream that a level reads, for each row of a mask: with the changes of its writers added."""
        if not self.normalises_after:
            return self.streams[level.place] + _mixed(mask, changes[: level.n_writers])
        x = self.embedding + _mixed(mask[:, :1], changes[:1])
        for sublayer in self.sublayers:
            if sublayer.writers.stop > level.n_writers:
                break
            output = sublayer.output + _mixed(mask[:, sublayer.writers], changes[sublayer.writers])
            x = sublayer.norm_after(x + sublayer.norm_of_output(output))
        return x

    @property
    def normalises_after(self) -> bool:
        """True if the stream, or what is added to it, passes norms behind its writers."""
        norms = ((sublayer.norm_of_output, sublayer.norm_after) for sublayer in self.sublayers)
        return any(norm.kind != "none" for of_sublayer in norms for norm in of_sublayer)

    def from_position(self, first: int) -> "BaseRun":
        """A whole run's positions from the first that may differ on: those before are keys and values alone."""

        def kept(x: Float[Tensor, "*shape pos width"]) -> Float[Tensor, "*shape pos width"]:
            return x[..., first:, :].contiguous()

        seen = zip(self.model.layers, self.projected, strict=True)
        keys_and_values = (layer.attention.finished(*projected)[1:] for layer, projected in seen)
        return replace(
            self,
            embedding=kept(self.embedding),
            written=kept(self.written),
            sublayers=tuple(replace(each, output=kept(each.output)) for each in self.sublayers),
            streams=tuple(map(kept, self.streams)),
            projected=tuple(Projected(*map(kept, each)) for each in self.projected),
            earlier=tuple(Earlier(k[:, :, :first], v[:, :, :first]) for k, v in keys_and_values),
        )


def first_difference(run: BaseRun, other: Float[Tensor, "pair pos d_model"]) -> int:
    """The first position at which any pair's embeddings differ from a run's; the last one, if none does.

    Before it both runs are the same, and so is every run that mixes them: no position sees a later one. Keys that are
    mixed with the one before are those of whole runs.
    """
    if run.model.architecture.key_smearing:
        return 0
    differs = (run.embedding != other).any(2).any(0)
    return int(differs.int().argmax()) if differs.any() else differs.shape[0] - 1


def where_they_differ(one: BaseRun, other: BaseRun) -> tuple[BaseRun, BaseRun]:
    """Two whole runs from the first position on at which they differ."""
    first = first_difference(one, other.embedding)
    return one.from_position(first), other.from_position(first)


# Dynamic gates are left out: they read the stream, too, at no port of their own.
KNOWN: KnownOptions = {
    **dict.fromkeys(("n_layers", "n_heads", "n_key_value_heads", "d_model", "d_head", "d_value", "d_mlp", "n_ctx")),
    **dict.fromkeys(("positions", "rotary_base", "rotary_fraction", "rotary_pairs")),
    "normalization": ("none", "layernorm", "rmsnorm"),
    "normalization_place": ("pre", "post", "output", "both"),
    **dict.fromkeys(("norm_epsilon", "feed_forward", "parallel_sublayers", "tied_embeddings", "qk_normalization")),
    **dict.fromkeys(("biases", "qkv_biases", "output_biases")),
    **dict.fromkeys(("attention", "attention_window", "windowed_layers", "stride", "top_k")),
    **dict.fromkeys(("rotary_stretch", "rotary_stretched_wavelengths", "windowed_rotary_base")),
    **dict.fromkeys(("qk_normalization_over", "norm_offset", "embedding_scale", "score_scale")),
    **dict.fromkeys(("score_cap", "logit_cap", "key_smearing")),
    "gates": ("none", "hard_concrete"),
}


def why_refused(architecture: Architecture) -> str | None:
    """The options with which a model has no such graph, as `field = value`; None if it has one."""
    return ", ".join(unknown_options(architecture, KNOWN)) or None


@torch.inference_mode()
def base_run(model: Transformer, tokens: Int[Tensor, "pair pos"]) -> BaseRun:
    """Run the model, and keep what each writer writes and each level reads.

    Raises:
        ValueError: interventions act on the model, of which its graph knows nothing.
    """
    if model.interventions:
        raise ValueError("a model with clamped heads or cut edges has no graph of its own. Set it free first.")
    graph = PromptGraph(model.architecture)
    x = embedding = model.embed(tokens)
    written, sublayers, streams = [embedding[None]], list[Sublayer](), list[Tensor]()
    projected, earlier = list[Projected](), list[Earlier]()
    n_writers = 1
    for layer in model.layers:
        q, k, v = layer.attention.finished(*(own := projected_of(layer, x)))
        z = gated(layer, layer.attention.mix_projected(q, k, v))
        projected.append(own)
        earlier.append(Earlier(k[:, :, :0], v[:, :, :0]))
        heads = torch.einsum("bhpv,hvd->hbpd", z, layer.attention.W_O)
        written.append(heads)
        streams.append(x)
        _, attention_out, feed_forward_out, after = layer.write(x, z)
        norms = layer.attention_out_norm, _norm_after(layer, layer.attention_norm)
        sublayers.append(Sublayer(slice(n_writers, n_writers + len(heads)), attention_out, *norms))
        n_writers += len(heads)
        if feed_forward_out is not None:
            streams.append(x if layer.parallel else layer.residual_mid(x, attention_out))
            written.append(feed_forward_out[None])
            norms = layer.feed_forward_out_norm, _norm_after(layer, layer.feed_forward_norm)
            sublayers.append(Sublayer(slice(n_writers, n_writers + 1), feed_forward_out, *norms))
            n_writers += 1
        x = after
    streams.append(x)
    parts = tuple(sublayers), tuple(streams), tuple(projected), tuple(earlier)
    return BaseRun(model, graph, embedding, torch.cat(written), *parts, logits_of(model, x))


def _norm_after(layer: Layer, norm: Norm) -> Norm:
    """The norm that the stream passes after a sublayer: one that does nothing, if norms come first."""
    return norm if layer.post else Norm("none", 1, 0.0)


def logits_of(model: Transformer, stream: Float[Tensor, "*runs pos d_model"]) -> Float[Tensor, "*runs d_vocab"]:
    """Logits after the last token, from the stream after all layers."""
    return model.unembed(model.final_norm(stream[..., -1, :]))


def projected_of(layer: Layer, x: Stream, first: int = 0) -> Projected:
    """Products of the stream that a layer reads, from a position on, with the maps of its queries, keys and values."""
    attention = layer.attention
    read = layer.read(x).to(attention.W_Q.dtype)
    added = attention.added_positions(read, first)
    placed = read if added is None else read + added
    W_K, W_V, _, _ = attention.stored_keys_and_values()
    parts = (placed, attention.W_Q), (placed, W_K), (read, W_V)
    return Projected(*(_by_head(part, weight) for part, weight in parts))


def mixed_values(layer: Layer, projected: Projected, earlier: Earlier) -> Float[Tensor, "pair head pos d_value"]:
    """What each head mixes, gated, if its queries see what was earlier, too."""
    q, k, v = layer.attention.finished(*projected, earlier.n)
    keys, values = torch.cat([earlier.keys, k], 2), torch.cat([earlier.values, v], 2)
    return gated(layer, layer.attention.mix_projected(q, keys, values))


def gated(layer: Layer, z: Float[Tensor, "pair head pos d_value"]) -> Float[Tensor, "pair head pos d_value"]:
    """What heads mixed, by gates that read nothing: one number a head."""
    gates = layer.attention.gates
    return z if gates is None else z * gates(z[:, 0])[..., None].to(z.dtype)


def stream_after(layer: Layer, x: Stream, earlier: Earlier) -> Stream:
    """The stream after a layer, of positions after the earlier ones."""
    return layer.write(x, mixed_values(layer, projected_of(layer, x, earlier.n), earlier))[-1]


def change_of_heads(
    run: BaseRun, level: Level, readers: Int[Tensor, "n"], inputs: Float[Tensor, "n pair pos d_model"]
) -> Float[Tensor, "head pair pos d_model"]:
    """By how much what heads write changes if some readers of their level, by place, read inputs of their own."""
    layer, earlier = run.model.layers[level.layer], run.earlier[level.layer]
    attention = layer.attention
    read = layer.read(inputs).to(attention.W_Q.dtype)
    added = attention.added_positions(inputs[0], earlier.n)
    W_K, W_V, _, _ = attention.stored_keys_and_values()
    parts, start = list[Tensor](), 0
    for port, weight, before in zip("QKV", (attention.W_Q, W_K, W_V), run.projected[level.layer], strict=True):
        own = (readers >= start) & (readers < start + len(weight))
        places, part = readers[own] - start, read[own]
        start += len(weight)
        if len(places):
            placed = part if added is None or port == "V" else part + added
            before = before.index_copy(1, places, torch.einsum("rbpd,rdw->brpw", placed, weight[places]))
        parts.append(before)
    z = mixed_values(layer, Projected(*parts), earlier)
    return torch.einsum("bhpv,hvd->hbpd", z, attention.W_O) - run.written[run.sublayers[level.place].writers]


def change_of_feed_forward(run: BaseRun, level: Level, inputs: Stream) -> Stream:
    """By how much what a feed-forward layer writes changes if it reads these inputs."""
    layer = run.model.layers[level.layer]
    assert layer.feed_forward is not None
    return layer.feed_forward(inputs if layer.post else layer.feed_forward_norm(inputs)) - (
        run.sublayers[level.place].output
    )


def _by_head(
    read: Float[Tensor, "pair pos d_model"], weight: Float[Tensor, "head d_model width"]
) -> Float[Tensor, "pair head pos width"]:
    return (read @ weight.transpose(0, 1).flatten(1)).unflatten(2, (weight.shape[0], weight.shape[2])).transpose(1, 2)


def _mixed(
    mask: Float[Tensor, "run writer"], changes: Float[Tensor, "writer pair pos d_model"]
) -> Float[Tensor, "run pair pos d_model"]:
    return torch.einsum("ru,ubpd->rbpd", mask.to(changes), changes)
