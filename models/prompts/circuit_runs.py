"""Runs of a circuit: its edges carry what the clean prompt gives, all others what the corrupt one does."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstream.models.prompts.patched_runs import (
    BaseRun,
    change_of_feed_forward,
    change_of_heads,
    first_difference,
    logits_of,
)


@torch.inference_mode()
def circuit_logits(
    corrupt: BaseRun, clean: Int[Tensor, "pair pos"], circuit: Bool[Tensor, "edge"]
) -> Float[Tensor, "pair d_vocab"]:
    """Logits after the last token if each reader reads, of its edges in the circuit, what they carry in this very run.

    With all edges it is the clean run, with none the corrupt one.
    """
    embedding = corrupt.model.embed(clean)
    first = first_difference(corrupt, embedding)
    return logits_between(corrupt.from_position(first), embedding[:, first:], circuit)


@torch.inference_mode()
def logits_between(
    corrupt: BaseRun, embedding: Float[Tensor, "pair pos d_model"], circuit: Bool[Tensor, "edge"]
) -> Float[Tensor, "pair d_vocab"]:
    """As `circuit_logits`, of a run from the first position on that may differ, and the clean embeddings there.

    A reader that no edge of the circuit enters reads what it reads at the corrupt prompt, and isn't computed again.
    """
    graph = corrupt.graph
    changes = torch.zeros_like(corrupt.written)
    changes[0] = embedding - corrupt.embedding
    for level in graph.levels:
        mask = graph.table(circuit, level)
        readers = mask.any(1).nonzero()[:, 0].to(changes.device)
        if not len(readers):
            continue
        inputs = corrupt.inputs(level, mask[mask.any(1)], changes)
        if level.kind == "logits":
            return logits_of(corrupt.model, inputs[0])
        writers = corrupt.sublayers[level.place].writers
        if level.kind == "attention":
            changes[writers] = change_of_heads(corrupt, level, readers, inputs)
        else:
            changes[writers] = change_of_feed_forward(corrupt, level, inputs)
    return corrupt.logits
