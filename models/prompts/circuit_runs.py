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
    for level, sublayer in zip(graph.levels, corrupt.sublayers, strict=False):
        mask = graph.table(circuit, level)
        if not mask.any():
            continue
        inputs, layer = corrupt.inputs(level, mask, changes), model.layers[level.layer]
        attends = level.kind == "attention"
        written = heads_written(layer, inputs) if attends else feed_forward_written(layer, inputs[0])
        changes[sublayer.writers] = written - corrupt.written[sublayer.writers]
    mask = graph.table(circuit, graph.levels[-1])
    return logits_of(model, corrupt.inputs(graph.levels[-1], mask, changes)[0]) if mask.any() else corrupt.logits
