"""Runs of a circuit: its edges carry what the clean prompt gives, all others what the corrupt one does."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstream.models.prompts.patched_runs import BaseRun, feed_forward_written, heads_written, logits_of


@torch.inference_mode()
def circuit_logits(
    corrupt: BaseRun, clean: Int[Tensor, "pair pos"], circuit: Bool[Tensor, "edge"]
) -> Float[Tensor, "pair d_vocab"]:
    """Logits after the last token if each reader reads, of its edges in the circuit, what they carry in this very run.

    With all edges it is the clean run, with none the corrupt one.
    """
    model, graph = corrupt.model, corrupt.graph
    changes = torch.zeros_like(corrupt.written)
    changes[0] = model.embed(clean) - corrupt.embedding
    for level in graph.levels:
        mask = graph.table(circuit, level)
        if not mask.any():
            continue
        inputs = corrupt.inputs(level, mask, changes)
        if level.kind == "logits":
            return logits_of(model, inputs[0])
        layer, first = model.layers[level.layer], _first_writer(corrupt, level.layer)
        if level.kind == "attention":
            heads = heads_written(layer, inputs)
            changes[first : first + len(heads)] = heads - corrupt.written[first : first + len(heads)]
        else:
            place = first + model.architecture.heads_per_layer[level.layer]
            changes[place] = feed_forward_written(layer, inputs[0]) - corrupt.written[place]
    return corrupt.logits


def _first_writer(run: BaseRun, layer: int) -> int:
    """The place of a layer's first head among writers."""
    per_layer = run.model.architecture.heads_per_layer
    more = 0 if run.model.architecture.feed_forward == "none" else 1
    return 1 + sum(n + more for n in per_layer[:layer])
