"""BOS, the token that opens whatever a model reads; some models were trained without."""

import torch
from jaxtyping import Int
from torch import Tensor

NO_BOS = -1  # in place of BOS's id, of a model that was trained without: no token has it


def n_bos(bos: int) -> int:
    """How many tokens BOS takes at the beginning of a sequence: 1, or 0 of a model without."""
    return int(bos != NO_BOS)


def opened(sequences: Int[Tensor, "batch pos"], bos: int) -> Int[Tensor, "batch bos_and_pos"]:
    """Sequences with BOS before each, if the model has one."""
    return torch.cat([sequences.new_full((len(sequences), n_bos(bos)), bos), sequences], dim=1)


def without_bos(counts: Int[Tensor, "d_vocab"], bos: int) -> Int[Tensor, "d_vocab"]:
    """What is counted of each token, and 0 of BOS."""
    return counts.where(torch.arange(len(counts), device=counts.device) != bos, 0)
