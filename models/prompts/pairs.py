"""Pairs of prompts that differ in what a behaviour depends on, and by how much a model prefers the right answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

NO_TOKEN = -1  # fills up rows of answers


@dataclass(frozen=True)
class Pairs:
    """Pairs of as many tokens each: what the model reads, and tokens that would be right or wrong to go on with."""

    clean: Int[Tensor, "pair pos"]
    corrupt: Int[Tensor, "pair pos"]
    answers: Int[Tensor, "pair answer"]  # filled up with NO_TOKEN
    wrong: Int[Tensor, "pair wrong"]  # filled up with NO_TOKEN

    def __len__(self) -> int:
        return len(self.clean)

    def to(self, device: torch.device | str) -> "Pairs":
        """The pairs on a device."""
        return Pairs(*(part.to(device) for part in (self.clean, self.corrupt, self.answers, self.wrong)))

    def batches(self, size: int) -> Iterator["Pairs"]:
        """The pairs, `size` at a time."""
        for start in range(0, len(self), size):
            yield self[start : start + size]

    def __getitem__(self, chosen: slice | Int[Tensor, "chosen"]) -> "Pairs":
        return Pairs(self.clean[chosen], self.corrupt[chosen], self.answers[chosen], self.wrong[chosen])

    def swapped(self, which: Int[Tensor, "chosen"]) -> "Pairs":
        """The pairs with right and wrong answers exchanged in some: a behaviour that no model has."""
        width = max(self.answers.shape[1], self.wrong.shape[1])
        answers, wrong = (_widened(tokens, width) for tokens in (self.answers, self.wrong))
        answers[which], wrong[which] = wrong[which], answers[which].clone()
        return Pairs(self.clean, self.corrupt, answers, wrong)

    def log_odds(self, logits: Float[Tensor, "*runs pair d_vocab"]) -> Float[Tensor, "*runs pair"]:
        """Log-odds of the answers against the wrong ones, in nats, given the logits after the last token."""
        return _log_sum(logits, self.answers) - _log_sum(logits, self.wrong)


def answer_rows(answers: Sequence[Sequence[int]]) -> Int[Tensor, "pair answer"]:
    """Tokens of each pair as rows of as many columns."""
    width = max(map(len, answers))
    return torch.tensor([[*tokens, *[NO_TOKEN] * (width - len(tokens))] for tokens in answers])


def _log_sum(logits: Float[Tensor, "*runs pair d_vocab"], tokens: Int[Tensor, "pair token"]) -> Tensor:
    there = tokens != NO_TOKEN
    index = tokens.where(there, 0).expand(*logits.shape[:-1], -1)
    return logits.gather(-1, index).masked_fill(~there, float("-inf")).logsumexp(-1)


def _widened(tokens: Int[Tensor, "pair token"], width: int) -> Int[Tensor, "pair width"]:
    widened = tokens.new_full((len(tokens), width), NO_TOKEN)
    widened[:, : tokens.shape[1]] = tokens
    return widened
