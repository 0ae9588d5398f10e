"""Statistics of attention patterns that don't depend on the tokens: spread, distance and confidence."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def visible_keys(
    tokens: Int[Tensor, "batch pos"], bos: int, *, with_bos: bool, distances: range | None = None
) -> Bool[Tensor, "batch q_pos k_pos"]:
    """Mask of the keys that each query sees, with or without BOS; a BOS query sees none, since it never counts.

    `distances` are those of a sparse pattern (`Architecture.visible_distances`); by default, all earlier keys are seen.
    """
    n = tokens.shape[1]
    content = tokens != bos
    causal = torch.ones(n, n, dtype=torch.bool, device=tokens.device).tril()
    if distances is not None:
        position = torch.arange(n, device=tokens.device)
        distance = position[:, None] - position
        causal = causal & (distance < distances.stop) & (distance % distances.step == 0)
    visible = causal & content[:, :, None]
    return visible if with_bos else visible & content[:, None, :]


def pattern_statistics(
    pattern: Float[Tensor, "batch head q_pos k_pos"], visible: Bool[Tensor, "batch q_pos k_pos"]
) -> dict[str, Float[Tensor, "batch head q_pos"]]:
    """Statistics of each query's row, scaled to sum to 1 over visible keys.

    NaN if a query sees fewer than two keys or attends to none.
    """
    n = pattern.shape[-1]
    position = torch.arange(n, dtype=pattern.dtype, device=pattern.device)
    n_visible = visible.sum(-1)[:, None]
    weight = pattern * visible[:, None]
    mass = weight.sum(-1)
    weight /= mass[..., None]
    confidence, argmax = weight.max(-1)
    counted = (n_visible > 1) & (mass > 0)
    statistics = {
        "entropy": torch.special.entr(weight).sum(-1) / n_visible.log(),  # 0..1, where 1 = uniform
        "mean_distance": position - weight @ position,  # positions back, expected under the pattern
        "argmax_distance": position - argmax,  # positions back, to the key attended to most
        "confidence": confidence,  # largest weight of the row. Source: Voita et al. 2019
    }
    return {name: values.where(counted, torch.nan) for name, values in statistics.items()}


def positional_offset(
    argmax_distance: Float[Tensor, "batch head q_pos"],
) -> tuple[Float[Tensor, "head"], Float[Tensor, "head"]]:
    """Most frequent distance to the key attended to most, and its share of all queries.

    A share of 0.9 or more makes a positional head. Source: Voita et al. 2019.
    """
    distance = argmax_distance.transpose(0, 1).flatten(1)
    counted = ~distance.isnan()
    counts = torch.zeros(len(distance), argmax_distance.shape[2], device=distance.device)
    counts.scatter_add_(1, distance.nan_to_num().long(), counted.to(counts.dtype))
    most, offset = counts.max(dim=1)
    n = counts.sum(dim=1)
    return offset.where(n > 0, torch.nan), most / n
