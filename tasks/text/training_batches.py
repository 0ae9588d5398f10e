"""Training batches as a pure function of (seed, step), so that a resumed run needs no reader state."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from headstream.models.bos import n_bos
from headstream.tasks.text.token_reading import Tokens


class Batches:
    """Sequences of n_ctx + 1 tokens: BOS, if there is one, and windows of training text, each used once per epoch."""

    def __init__(
        self, tokens: Tokens, *, n_ctx: int, batch_size: int, seed: int, repeats_fraction: float = 0.0
    ) -> None:
        self.stream, self.bos, self.vocabulary = tokens.train, tokens.bos, tokens.vocabulary
        self.n_ctx, self.batch_size, self.seed = n_ctx, batch_size, seed
        self.repeats_fraction = repeats_fraction
        self._n_usable = len(self.stream) - 1 + n_bos(self.bos)  # without BOS, windows share a token with the next
        self.n_windows = max(1, self._n_usable // n_ctx - 1)  # one less, so that every epoch may start anywhere
        self._epoch = lru_cache(maxsize=2)(self._draw_epoch)

    def batch(self, step: int) -> NDArray[np.int64]:
        """The batch of a step, [batch_size, n_ctx + 1]."""
        places = np.arange(step * self.batch_size, (step + 1) * self.batch_size)
        starts = [self._epoch(p // self.n_windows)[p % self.n_windows] for p in places.tolist()]
        tokens = np.full((self.batch_size, self.n_ctx + 1), self.bos, dtype=np.int64)
        first = n_bos(self.bos)
        tokens[:, first:] = self.stream.windows(np.array(starts), self.n_ctx + 1 - first)
        if self.repeats_fraction:
            self._put_repeats(tokens, np.random.default_rng([self.seed, 1, step]))
        return tokens

    def _draw_epoch(self, epoch: int) -> NDArray[np.int64]:
        """The starts of an epoch's windows, in order: every epoch has a new offset and a new shuffle."""
        rng = np.random.default_rng([self.seed, 0, epoch])
        slack = self._n_usable - self.n_windows * self.n_ctx
        return rng.permutation(self.n_windows) * self.n_ctx + rng.integers(0, min(slack, self.n_ctx) + 1)

    def _put_repeats(self, tokens: NDArray[np.int64], rng: np.random.Generator) -> None:
        """Replace a share of the rows by random tokens, repeated with a random period from n_ctx / 8 to n_ctx / 2."""
        others = np.setdiff1d(np.arange(self.vocabulary), self.bos)
        for row in np.flatnonzero(rng.random(len(tokens)) < self.repeats_fraction):
            period = rng.integers(max(1, self.n_ctx // 8), self.n_ctx // 2 + 1)
            first = n_bos(self.bos)
            tokens[row, first:] = np.resize(rng.choice(others, period), self.n_ctx + 1 - first)
