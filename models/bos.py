"""BOS, the token that opens every sequence of a model; some models were trained without one."""

import torch
from jaxtyping import Int
from torch import Tensor

NO_BOS = -1  # stands for BOS's id in models that were trained without; no token has it


def n_bos(bos: int) -> int:
    """Number of tokens that BOS takes at the start of a sequence: 1, or 0 for a model without."""
    return int(bos != NO_BOS)


def opened(sequences: Int[Tensor, "batch pos"], bos: int) -> Int[Tensor, "batch bos_and_pos"]:
    """Sequences with BOS before each, if the model has one."""
    return torch.cat([sequences.new_full((len(sequences), n_bos(bos)), bos), sequences], dim=1)


def without_bos(counts: Int[Tensor, "d_vocab"], bos: int) -> Int[Tensor, "d_vocab"]:
    """The counts of tokens, with that of BOS set to 0."""
    return counts.where(torch.arange(len(counts), device=counts.device) != bos, 0)
