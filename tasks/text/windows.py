"""Which text most stages measure models on, and which other text the means of ablated outputs are taken on."""

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from tasks.text.token_reading import Tokens


def evaluation_text(tokens: Tokens, n_tokens: int, n_windows: int) -> Int[Tensor, "batch bos_and_pos"]:
    """At most `n_windows` sequences of BOS and `n_tokens` tokens, spread over the first half of the validation text."""
    return _validation_text(tokens, n_tokens, n_windows, (0.0, 0.5))


def reference_text(tokens: Tokens, n_tokens: int, n_windows: int) -> Int[Tensor, "batch bos_and_pos"]:
    """At most `n_windows` sequences over the second half: for what takes the place of an ablated head's output."""
    return _validation_text(tokens, n_tokens, n_windows, (0.5, 1.0))


def _validation_text(tokens: Tokens, n_tokens: int, n_windows: int, part: tuple[float, float]) -> Tensor:
    windows = tokens.validation.spread_windows(n_windows, n_tokens, part)
    return torch.from_numpy(np.insert(windows, 0, tokens.bos, axis=1))
