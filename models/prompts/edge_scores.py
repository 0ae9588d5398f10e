"""Effects of all edges at once, to first order: by gradients with respect to what each reader reads.

Source: Syed et al. 2023 (EAP: the gradient at the clean prompt); Hanna et al. 2024 (EAP-IG: the mean gradient on the
way from the corrupt embeddings to the clean ones, here at the midpoints of equal steps).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.norms import Norm
from headstream.models.prompts.graph import Level, PromptGraph
from headstream.models.prompts.pairs import Pairs
from headstream.models.prompts.patched_runs import (
    BaseRun,
    Earlier,
    base_run,
    mixed_values,
    projected_of,
    where_they_differ,
)
from headstream.models.transformer import Layer, Transformer

STEPS = 5

ReaderGradients = Float[Tensor, "reader pair pos d_model"]


def edge_scores(model: Transformer, pairs: Pairs, steps: int | None = STEPS) -> Float[Tensor, "edge pair"]:
    """What each edge adds to the log-odds of each pair, to first order, in nats: positive if it helps.

    An edge's score is the difference of what its writer writes in the two runs, along the gradient of the log-odds with
    respect to what its reader reads, summed over positions. With `steps` the gradient is the mean over so many points
    between the embeddings of the two prompts (EAP-IG); with None it is that at the clean prompt (EAP).
    """
    clean, corrupt = where_they_differ(base_run(model, pairs.clean), base_run(model, pairs.corrupt))
    graph, difference = clean.graph, (clean.written - corrupt.written).transpose(0, 1).contiguous()
    scores = difference.new_zeros(len(pairs), graph.n_edges)
    points = [1.0] if steps is None else [(step + 0.5) / steps for step in range(steps)]
    for t in points:
        embedding = corrupt.embedding + t * (clean.embedding - corrupt.embedding)
        for level, gradients in _gradients(clean, embedding, pairs):
            table = scores[:, level.edges].unflatten(1, (len(level.readers), level.n_writers))
            for writers, gradient in gradients:
                along = gradient.transpose(0, 1).flatten(2) @ difference[:, writers].flatten(2).mT
                table[:, :, writers] += along / len(points)
    return scores.T


def node_scores(model: Transformer, pairs: Pairs) -> Float[Tensor, "writer pair"]:
    """What each writer adds to the log-odds of each pair, to first order at the clean prompt (EAP), in nats."""
    scores, graph = edge_scores(model, pairs, None), PromptGraph(model.architecture)
    of_writers = scores.new_zeros(len(graph.writers), len(pairs))
    for level in graph.levels:
        of_writers[: level.n_writers] += graph.table(scores, level).sum(0)
    return of_writers


@dataclass
class _Tapped:
    """A run with what gradients are taken of: products with each level's maps, or what it reads if there are none."""

    taps: list[tuple[Tensor, ...]] = field(default_factory=list)  # of each level
    streams: list[Tensor] = field(default_factory=list)  # that each level reads
    outputs: list[Tensor] = field(default_factory=list)  # of each sublayer, before a norm of it
    before_norms: list[Tensor] = field(default_factory=list)  # the stream after each sublayer, before a norm of it


def _gradients(
    run: BaseRun, embedding: Float[Tensor, "pair pos d_model"], pairs: Pairs
) -> Iterator[tuple[Level, Iterator[tuple[slice, ReaderGradients]]]]:
    """For each level, and each part of its writers, the gradients of the log-odds by what its readers read of them."""
    model, tapped = run.model, _Tapped()
    with torch.enable_grad():
        x = embedding.clone().requires_grad_()
        for layer, earlier in zip(model.layers, run.earlier, strict=True):
            x = _run_tapped(layer, x, earlier, tapped)
        read = model.final_norm(x).clone()
        tapped.streams.append(x)
        tapped.taps.append((read,))
        log_odds = pairs.log_odds(model.unembed(read[:, -1])).sum()
        found = iter(torch.autograd.grad(log_odds, [tap for taps in tapped.taps for tap in taps]))
    for level, stream, taps in zip(run.graph.levels, tapped.streams, tapped.taps, strict=True):
        by_reader = _by_reader(model, level, stream, list(islice(found, len(taps))))
        yield level, _carried_back(run, level, by_reader, tapped)


def _run_tapped(layer: Layer, x: Float[Tensor, "pair pos d_model"], earlier: Earlier, tapped: _Tapped) -> Tensor:
    """A layer's forward pass, with its taps."""
    taps = projected_of(layer, x, earlier.n)
    out = layer.attention.write(mixed_values(layer, taps, earlier))
    tapped.streams.append(x)
    tapped.taps.append(taps)
    tapped.outputs.append(out)
    tapped.before_norms.append(x + layer.attention_out_norm(out))
    mid = layer.residual_mid(x, out)
    if layer.feed_forward is None:
        return mid
    read_mid = layer.read_mid(x, mid).clone()
    feed_forward_out = layer.feed_forward(read_mid)
    tapped.streams.append(x if layer.parallel else mid)
    tapped.taps.append((read_mid,))
    tapped.outputs.append(feed_forward_out)
    tapped.before_norms.append(mid + layer.feed_forward_out_norm(feed_forward_out))
    return layer.residual_after(mid, feed_forward_out)


def _by_reader(model: Transformer, level: Level, stream: Tensor, found: Sequence[Tensor]) -> ReaderGradients:
    """Gradients by the stream that each reader of a level reads, from those by its taps."""
    if level.kind == "logits":
        return _pulled_back(model.final_norm, stream, found[0][None])
    layer = model.layers[level.layer]
    if level.kind == "feed_forward":
        return found[0][None] if layer.post else _pulled_back(layer.feed_forward_norm, stream, found[0][None])
    W_K, W_V, _, _ = layer.attention.stored_keys_and_values()
    maps = zip(found, (layer.attention.W_Q, W_K, W_V), strict=True)
    by_read = torch.cat([torch.einsum("bhpw,hdw->hbpd", gradient, weight) for gradient, weight in maps])
    return by_read if layer.post else _pulled_back(layer.attention_norm, stream, by_read)


def _carried_back(
    run: BaseRun, level: Level, gradients: ReaderGradients, tapped: _Tapped
) -> Iterator[tuple[slice, ReaderGradients]]:
    """Gradients by what writers wrote: past the norms that it passes between a writer and the level."""
    if not run.normalises_after:
        yield slice(0, level.n_writers), gradients
        return
    sublayers = list(zip(run.sublayers, tapped.outputs, tapped.before_norms, strict=True))
    for sublayer, output, before in reversed(sublayers):
        if sublayer.writers.stop > level.n_writers:
            continue
        gradients = _pulled_back(sublayer.norm_after, before, gradients)
        yield sublayer.writers, _pulled_back(sublayer.norm_of_output, output, gradients)
    yield slice(0, 1), gradients


def _pulled_back(norm: Norm, x: Float[Tensor, "pair pos d_model"], gradients: ReaderGradients) -> ReaderGradients:
    """Gradients by the vector that a norm normalises, from those by what it gives."""
    if norm.kind == "none":
        return gradients
    with torch.enable_grad():
        read = x.detach().expand_as(gradients).requires_grad_()
        (found,) = torch.autograd.grad(norm(read), read, gradients)
    return found
