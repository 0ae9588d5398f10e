"""Exact effects of edges and nodes: what they carry is replaced, and everything behind it is computed again."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from headstream.models.prompts.graph import Level
from headstream.models.prompts.pairs import Pairs
from headstream.models.prompts.patched_runs import (
    BaseRun,
    change_of_feed_forward,
    change_of_heads,
    logits_of,
    stream_after,
    where_they_differ,
)

RUNS_AT_ONCE = 2**11  # positions of all runs together

Changes = Float[Tensor, "run pair pos d_model"]  # of what a sublayer writes


@torch.inference_mode()
def exact_edge_effects(
    clean: BaseRun, corrupt: BaseRun, pairs: Pairs, edges: Sequence[int]
) -> Float[Tensor, "chosen pair"]:
    """By how much the log-odds fall if an edge, and it alone, carries what its writer writes at the corrupt prompt."""
    clean, corrupt = where_they_differ(clean, corrupt)
    changes, whole = corrupt.written - clean.written, pairs.log_odds(clean.logits)
    effects = whole.new_zeros(len(edges), len(pairs))
    for level in clean.graph.levels:
        of_level = range(level.edges.start, level.edges.stop)
        chosen = [(i, edge - level.first_edge) for i, edge in enumerate(edges) if edge in of_level]
        for some in _at_a_time(chosen, clean):
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
    clean, corrupt = where_they_differ(clean, corrupt)
    noised, restored = (torch.full((len(clean.graph.writers), len(pairs)), torch.nan).to(clean.logits) for _ in "12")
    for run, other, effects, sign in ((clean, corrupt, noised, -1), (corrupt, clean, restored, 1)):
        changes, whole = other.written - run.written, pairs.log_odds(run.logits)
        for level, sublayer in zip(run.graph.levels, run.sublayers, strict=False):
            for some in _at_a_time(list(range(sublayer.writers.start, sublayer.writers.stop)), clean):
                effects[some] = sign * (pairs.log_odds(logits_after(run, level, changes[some])) - whole)
    return noised, restored


def logits_after(run: BaseRun, level: Level, changes: Changes) -> Float[Tensor, "run pair d_vocab"]:
    """Logits after the last token if the sublayer of a level writes something else: each change apart."""
    layer, place, n_runs = run.model.layers[level.layer], level.place, len(changes)

    def repeated(x: Float[Tensor, "pair pos d_model"]) -> Float[Tensor, "runs_pair pos d_model"]:
        return x.repeat(n_runs, 1, 1)

    output = repeated(run.sublayers[place].output) + changes.flatten(0, 1)
    if level.kind == "attention":
        _, x = layer.after_attention(repeated(run.streams[place]), output)
    else:
        mid = layer.residual_mid(run.streams[place - 1], run.sublayers[place - 1].output)
        x = layer.residual_after(repeated(mid), output)
    for later, earlier in zip(run.model.layers[level.layer + 1 :], run.earlier[level.layer + 1 :], strict=True):
        x = stream_after(later, x, earlier.repeated(n_runs))
    return logits_of(run.model, x).unflatten(0, (n_runs, -1))


def _change(run: BaseRun, level: Level, reader: int, read: Float[Tensor, "pair pos d_model"]) -> Tensor:
    """The change of what a level's sublayer writes if one of its readers reads something else."""
    if level.kind == "feed_forward":
        return change_of_feed_forward(run, level, read)
    return change_of_heads(run, level, torch.tensor([reader], device=read.device), read[None]).sum(0)


def _at_a_time(items: Sequence, run: BaseRun) -> Iterator[list]:
    n_pairs, n_positions, _ = run.embedding.shape
    size = max(1, RUNS_AT_ONCE // (n_pairs * n_positions))
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
