"""Counts of `source ... destination output` in the corpus itself, for the few that a head is asked about."""

import torch
from jaxtyping import Int
from torch import Tensor

from headstream.models.bos_in_tensors import without_bos


class SkipTrigramCounts:
    """Counts in windows of text as long as a context: the source comes anywhere before the destination.

    `counts` is how often each token comes; BOS counts as absent.
    """

    def __init__(self, windows: Int[Tensor, "window pos"], d_vocab: int, bos: int) -> None:
        self.n_windows, self.length = windows.shape
        self.tokens = windows.flatten()
        self.counts = torch.bincount(self.tokens, minlength=d_vocab)
        self._by_token = self.tokens.argsort(stable=True).split(self.counts.tolist())
        self.counts = without_bos(self.counts, bos)

    def count(
        self,
        source: Int[Tensor, "source"],
        destination: Int[Tensor, "source destination"],
        output: Int[Tensor, "source output"],
    ) -> tuple[Int[Tensor, "source destination"], Int[Tensor, "source destination output"]]:
        """Count how often a destination comes after the source, and how often each output comes next.

        A window's last token is only ever an output.
        """
        n_pairs = torch.zeros_like(destination)
        n_entries = n_pairs.new_zeros(*destination.shape, output.shape[1])
        for i, token in enumerate(source.tolist()):
            first = self._first(token)
            for j, other in enumerate(destination[i].tolist()):
                places = self._by_token[other]
                places = places[(places > first[places // self.length]) & (places % self.length < self.length - 1)]
                n_pairs[i, j] = len(places)
                n_entries[i, j] = (self.tokens[places + 1, None] == output[i]).sum(0)
        return n_pairs, n_entries

    def _first(self, token: int) -> Int[Tensor, "window"]:
        """The index in the flat text at which a token first comes in each window; beyond its end where it doesn't."""
        places = self._by_token[token]
        nowhere = places.new_full((self.n_windows,), len(self.tokens))
        return nowhere.scatter_reduce(0, places // self.length, places, "amin")
