"""Scores from attention patterns alone. BOS sees only itself, so it doesn't count as a query."""

import torch

from headstream.models.batching import batches
from headstream.models.heads.scoring_inputs import HeadScores, ScoringInputs


@torch.inference_mode()
def attention_variance(inputs: ScoringInputs) -> HeadScores:
    """Variance over sequences of a query's attention to a key, mean over all pairs that the mask allows.

    NaN for a single sequence.
    """
    model, n_sequences, n = inputs.model, len(inputs.text), inputs.text.shape[1] - 1
    shapes = [(2, n_heads, n, n) for n_heads in model.architecture.heads_per_layer]
    moments = [torch.zeros(shape, dtype=torch.float64) for shape in shapes]  # sums of A and of its square
    for batch in batches(model, inputs.text):
        trace = model.trace(batch[:, :-1], inputs.head_mask, inputs.fill)
        for own, traced in zip(moments, trace.layers, strict=True):
            pattern = traced.pattern.double()
            own += torch.stack([pattern.sum(0), pattern.square().sum(0)]).cpu()
    scores: HeadScores = []
    for layer, (sums, squares) in zip(model.layers, moments, strict=True):
        visible = layer.attention.position_scores(n).isfinite().expand_as(sums).cpu()
        variance = (squares - sums.square() / n_sequences).clamp(min=0) / (n_sequences - 1)  # below 0 only by rounding
        scores.append((variance * visible)[:, 1:].sum((1, 2)) / visible[:, 1:].sum((1, 2)))
    return scores


@torch.inference_mode()
def confidence(inputs: ScoringInputs) -> HeadScores:
    """Largest weight of each query, mean over queries and sequences, 0..1. Source: Voita et al. 2019, section 4."""
    found = []
    for batch in batches(inputs.model, inputs.text):
        trace = inputs.model.trace(batch[:, :-1], inputs.head_mask, inputs.fill)
        found.append([traced.pattern[:, :, 1:].amax(-1).double().cpu() for traced in trace.layers])
    return [torch.cat(layer).mean((0, 2)) for layer in zip(*found, strict=True)]
