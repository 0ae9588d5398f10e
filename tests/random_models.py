"""Models whose every parameter is random, in float64, a prime a dimension: what identities are tested on."""

import torch

from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer

D_VOCAB, D_MODEL, D_HEAD, D_VALUE, N_CTX = 37, 23, 5, 7, 19
SMALL = {"d_model": D_MODEL, "d_head": D_HEAD, "d_value": D_VALUE, "n_ctx": N_CTX}


def random_model(seed: int = 0, scale: float = 0.5, **options: object) -> Transformer:
    """No parameter is 0 or 1, those that start there included."""
    model = Transformer(Architecture(**{**SMALL, "n_heads": 3, **options}), D_VOCAB).double()
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data.normal_(0, scale, generator=generator)
    return model.requires_grad_(False)


def initial_model(seed: int = 0, d_vocab: int = D_VOCAB, **options: object) -> Transformer:
    """A model as it is before training."""
    model = Transformer(Architecture(**options), d_vocab)
    return model.initialize(torch.Generator().manual_seed(seed)).double().requires_grad_(False)
