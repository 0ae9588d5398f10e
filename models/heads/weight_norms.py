"""Scores from weights alone: Frobenius norms of matrices, without the weights of norms folded in."""

import torch

from headstream.models.heads.scoring_inputs import HeadScores, ScoringInputs


def weight_norm(inputs: ScoringInputs) -> HeadScores:
    """Frobenius norm of W_V W_O, as sqrt(tr(W_V^T W_V W_O W_O^T)): no d_model x d_model matrix is formed."""
    squares = []
    for layer in inputs.model.layers:
        W_V, W_O = layer.attention.W_V.double(), layer.attention.W_O.double()
        squares.append(((W_V.mT @ W_V) * (W_O @ W_O.mT)).sum((1, 2)))
    return [square.clamp(min=0).sqrt().cpu() for square in squares]  # below 0 only by rounding


def qkv_norm(inputs: ScoringInputs) -> HeadScores:
    """Frobenius norm of W_Q, W_K and W_V side by side."""
    scores = []
    for layer in inputs.model.layers:
        a = layer.attention
        scores.append(torch.cat([a.W_Q, a.W_K, a.W_V], dim=2).double().square().sum((1, 2)).sqrt().cpu())
    return scores
