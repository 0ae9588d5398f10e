"""Sequences with BOS before them, and counts of tokens without it."""

import torch
from jaxtyping import Int
from torch import Tensor

from headstream.models.bos import n_bos


def opened(sequences: Int[Tensor, "batch pos"], bos: int) -> Int[Tensor, "batch bos_and_pos"]:
    """Sequences with BOS before each, if the model has one."""
    return torch.cat([sequences.new_full((len(sequences), n_bos(bos)), bos), sequences], dim=1)


def without_bos(counts: Int[Tensor, "d_vocab"], bos: int) -> Int[Tensor, "d_vocab"]:
    """The counts of tokens, with that of BOS set to 0."""
    return counts.where(torch.arange(len(counts), device=counts.device) != bos, 0)
