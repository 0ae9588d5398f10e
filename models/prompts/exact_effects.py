"""Exact effects of edges and nodes: what they carry is replaced, and everything behind it is computed again."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from headstream.models.prompts.graph import Level
from headstream.models.prompts.pairs import Pairs
from headstream.models.prompts.patched_runs import BaseRun, feed_forward_written, heads_written, logits_of

RUNS_AT_ONCE = 2**13  # positions of all runs together

Changes = Float[Tensor, "run pair pos d_model"]  # of what a sublayer writes


@torch.inference_mode()
def exact_edge_effects(
    clean: BaseRun, corrupt: BaseRun, pairs: Pairs, edges: Sequence[int]
) -> Float[Tensor, "chosen pair"]:
    """By how much the log-odds fall if an edge, and it alone, carries what its writer writes at the corrupt prompt."""
    changes, whole = corrupt.written - clean.written, pairs.log_odds(clean.logits)
    effects = whole.new_zeros(len(edges), len(pairs))
    for level in clean.graph.levels:
        of_level = range(level.edges.start, level.edges.stop)
        chosen = [(i, edge - level.first_edge) for i, edge in enumerate(edges) if edge in of_level]
        for some in _at_a_time(chosen, pairs):
            place = torch.tensor([place for _, place in some])
            mask = one_hot(place % level.n_writers, level.n_writers)
            inputs = clean.inputs(level, mask, changes)
            if level.kind == "logits":
                logits = logits_of(clean.model, inputs)
            else:
                readers = (place // level.n_writers).tolist()
                changed = [_change(clean, level, *read) for read in zip(readers, inputs, strict=True)]
                logits = logits_after(clean, level, torch.stack(changed))
            effects[[i for i, _ in some]] = whole - pairs.log_odds(logits)
    return effects


@torch.inference_mode()
def exact_node_effects(
    clean: BaseRun, corrupt: BaseRun, pairs: Pairs
) -> tuple[Float[Tensor, "writer pair"], Float[Tensor, "writer pair"]]:
    """What each writer but the embedding is worth, in nats of log-odds, patched both ways.

    First by how much they fall if it writes what it writes at the corrupt prompt (noising), then by how much they rise
    at the corrupt prompt if it writes what it writes at the clean one (denoising). The embedding has NaN.
    """
    noised, restored = (torch.full((len(clean.graph.writers), len(pairs)), torch.nan).to(clean.logits) for _ in "12")
    for run, other, effects, sign in ((clean, corrupt, noised, -1), (corrupt, clean, restored, 1)):
        changes, whole = other.written - run.written, pairs.log_odds(run.logits)
        for level, sublayer in zip(run.graph.levels, run.sublayers, strict=False):
            for some in _at_a_time(list(range(sublayer.writers.start, sublayer.writers.stop)), pairs):
                effects[some] = sign * (pairs.log_odds(logits_after(run, level, changes[some])) - whole)
    return noised, restored


def logits_after(run: BaseRun, level: Level, changes: Changes) -> Float[Tensor, "run pair d_vocab"]:
    """Logits after the last token if the sublayer of a level writes something else: each change apart."""
    layer, traced = run.model.layers[level.layer], run.traces[level.layer]
    n_pairs = len(traced.residual_in)
    stream, attention_out = (part.repeat(len(changes), 1, 1) for part in (traced.residual_in, traced.attention_out))
    changed = changes.flatten(0, 1)
    if level.kind == "attention":
        _, x = layer.after_attention(stream, attention_out + changed)
    else:
        assert traced.feed_forward_out is not None
        output = traced.feed_forward_out.repeat(len(changes), 1, 1) + changed
        x = layer.residual_after(layer.residual_mid(stream, attention_out), output)
    for later in run.model.layers[level.layer + 1 :]:
        x = later(x)
    return logits_of(run.model, x).unflatten(0, (len(changes), n_pairs))


def _change(run: BaseRun, level: Level, reader: int, read: Float[Tensor, "pair pos d_model"]) -> Tensor:
    """The change of what a level's sublayer writes if one of its readers reads something else."""
    layer, stream = run.model.layers[level.layer], run.streams[run.graph.levels.index(level)]
    if level.kind == "feed_forward":
        return feed_forward_written(layer, read) - feed_forward_written(layer, stream)
    inputs = stream.expand(len(level.readers), *stream.shape).clone()
    before = heads_written(layer, inputs)
    inputs[reader] = read
    return (heads_written(layer, inputs) - before).sum(0)


def _at_a_time(items: Sequence, pairs: Pairs) -> Iterator[list]:
    size = max(1, RUNS_AT_ONCE // pairs.clean.numel())
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
