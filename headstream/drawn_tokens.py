"""Tokens that a model goes on with, drawn one after another from what it predicts."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.bos import NO_BOS


@torch.no_grad()
def drawn_tokens(
    predict: Callable[[Int[Tensor, "1 pos"]], Float[Tensor, "d_vocab"]],
    ids: Int[Tensor, "1 pos"],
    n: int,
    seed: int,
    temperature: float,
    bos: int,
) -> list[int]:
    """The n tokens after some, each drawn from logits that `predict` gives for all before it, none of them BOS.

    At temperature 0, the likeliest ones.
    """
    generator, drawn = torch.Generator().manual_seed(seed), list[int]()
    for _ in range(n):
        logits = predict(torch.cat([ids, torch.tensor([drawn], dtype=ids.dtype)], 1)).clone()
        if bos != NO_BOS:
            logits[bos] = -torch.inf
        if temperature > 0:
            token = torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)
        else:
            token = logits.argmax()
        drawn.append(int(token))
    return drawn
