"""The tokens of a batch that induction predicts, by the definitions of the table `corpus_repeats`."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headstream.tasks.study.training_interventions import Which


def predicted_by_induction(
    windows: Int[Tensor, "batch pos_and_next"],
    bos: int,
    which: Which,
    common_successors: Int[Tensor, "d_vocab"] | None = None,
) -> Bool[Tensor, "batch pos"]:
    """Whether the next token is what followed the last earlier occurrence of the current one, or the current two.

    Of a sequence, as a model reads it, and never of or after BOS. `beyond_bigrams` are those predicted by the current
    two that aren't the current one's commonest successor in the training text, which `common_successors` gives.
    """
    current, following = windows[:, :-1], windows[:, 1:]
    n = current.shape[1]
    same = (current[:, :, None] == current[:, None, :]) & (current != bos)[:, :, None]
    if which != "token":
        same[:, 1:, 1:] &= same[:, :-1, :-1].clone()
        same[:, :, 0] = same[:, 0] = False
    earlier = same & torch.ones(n, n, dtype=torch.bool, device=windows.device).tril(-1)
    last = torch.where(earlier, torch.arange(n, device=windows.device), -1).amax(2)
    predicted = (last >= 0) & (following.gather(1, last.clamp(min=0)) == following) & (following != bos)
    if which == "beyond_bigrams":
        assert common_successors is not None
        predicted &= common_successors[current] != following
    return predicted
