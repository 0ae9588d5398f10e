"""Runs of a model in which every reader has an input of its own: what each writer writes may be that of another run.

A reader's input is the stream of a run that is there already, the base, changed by what some writers write differently.
With norms after sublayers the stream is normalised anew, sublayer by sublayer, for each reader.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.models.known_options import KnownOptions, unknown_options
from headstream.models.norms import Norm
from headstream.models.prompts.graph import Level, PromptGraph
from headstream.models.transformer import Layer, LayerTrace, Transformer

Stream = Float[Tensor, "*runs pos d_model"]


@dataclass(frozen=True)
class Sublayer:
    """The attention or feed-forward layer of a run: its output, biases included, and the writers that it is of."""

    writers: slice  # of the graph's
    output: Float[Tensor, "pair pos d_model"]
    norm_of_output: Norm  # before it is added to the stream, if there is one
    norm_after: Norm  # of the stream then, if there is one


@dataclass(frozen=True)
class BaseRun:
    """A run whose readers can be given other inputs."""

    model: Transformer
    graph: PromptGraph
    embedding: Float[Tensor, "pair pos d_model"]
    written: Float[Tensor, "writer pair pos d_model"]  # by each writer to the stream
    traces: tuple[LayerTrace, ...]
    sublayers: tuple[Sublayer, ...]  # in the order of levels
    streams: tuple[Float[Tensor, "pair pos d_model"], ...]  # that each level reads
    logits: Float[Tensor, "pair d_vocab"]  # after the last token

    def inputs(
        self, level: Level, mask: Float[Tensor, "run writer"], changes: Float[Tensor, "writer pair pos d_model"]
    ) -> Float[Tensor, "run pair pos d_model"]:
        """The stream that a level reads, for each row of a mask: with the changes of its writers added."""
        if not self.normalises_after:
            place = self.graph.levels.index(level)
            return self.streams[place] + _mixed(mask, changes[: level.n_writers])
        x = self.embedding + _mixed(mask[:, :1], changes[:1])
        for sublayer in self.sublayers:
            if sublayer.writers.stop > level.n_writers:
                break
            output = sublayer.output + _mixed(mask[:, sublayer.writers], changes[sublayer.writers])
            x = sublayer.norm_after(x + sublayer.norm_of_output(output))
        return x

    @property
    def normalises_after(self) -> bool:
        norms = ((sublayer.norm_of_output, sublayer.norm_after) for sublayer in self.sublayers)
        return any(norm.kind != "none" for of_sublayer in norms for norm in of_sublayer)


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
    written, traces, sublayers, streams = [embedding[None]], list[LayerTrace](), list[Sublayer](), list[Tensor]()
    n_writers = 1
    for layer in model.layers:
        traced = layer.trace(x)
        traces.append(traced)
        heads = traced.head_outputs.transpose(0, 1)
        written.append(heads)
        streams.append(x)
        norms = layer.attention_out_norm, _norm_after(layer, layer.attention_norm)
        sublayers.append(Sublayer(slice(n_writers, n_writers + len(heads)), traced.attention_out, *norms))
        n_writers += len(heads)
        if traced.feed_forward_out is not None:
            streams.append(x if layer.parallel else layer.residual_mid(x, traced.attention_out))
            written.append(traced.feed_forward_out[None])
            norms = layer.feed_forward_out_norm, _norm_after(layer, layer.feed_forward_norm)
            sublayers.append(Sublayer(slice(n_writers, n_writers + 1), traced.feed_forward_out, *norms))
            n_writers += 1
        x = traced.residual_out
    logits = logits_of(model, x)
    return BaseRun(model, graph, embedding, torch.cat(written), tuple(traces), tuple(sublayers), (*streams, x), logits)


def _norm_after(layer: Layer, norm: Norm) -> Norm:
    """The norm that the stream passes after a sublayer: one that does nothing, if norms come first."""
    return norm if layer.post else Norm("none", 1, 0.0)


def logits_of(model: Transformer, stream: Float[Tensor, "*runs pos d_model"]) -> Float[Tensor, "*runs d_vocab"]:
    """Logits after the last token, from the stream after all layers."""
    return model.unembed(model.final_norm(stream[..., -1, :]))


def heads_written(
    layer: Layer, inputs: Float[Tensor, "reader pair pos d_model"]
) -> Float[Tensor, "head pair pos d_model"]:
    """What each head of a layer writes if its queries, keys and values read inputs of their own, in a level's order."""
    attention = layer.attention
    read = layer.read(inputs).to(attention.W_Q.dtype)
    added = attention.added_positions(inputs[0])
    W_K, W_V, _, _ = attention.stored_keys_and_values()
    n_heads, n_groups = len(attention.W_Q), len(W_K)
    from_queries, from_keys, from_values = read.split([n_heads, n_groups, n_groups])
    if added is not None:
        from_queries, from_keys = from_queries + added, from_keys + added
    q, k, v = (
        torch.einsum("hbpd,hdw->bhpw", part, weight)
        for part, weight in ((from_queries, attention.W_Q), (from_keys, W_K), (from_values, W_V))
    )
    z = attention.mix_projected(*attention.finished(q, k, v))
    if attention.gates is not None:
        z = z * attention.gates(read[0])[..., None].to(z.dtype)
    return torch.einsum("bhpv,hvd->hbpd", z, attention.W_O)


def feed_forward_written(layer: Layer, inputs: Stream) -> Stream:
    """What a feed-forward layer writes if it reads this input."""
    assert layer.feed_forward is not None
    return layer.feed_forward(inputs if layer.post else layer.feed_forward_norm(inputs))


def _mixed(
    mask: Float[Tensor, "run writer"], changes: Float[Tensor, "writer pair pos d_model"]
) -> Float[Tensor, "run pair pos d_model"]:
    return torch.einsum("ru,ubpd->rbpd", mask.to(changes), changes)
