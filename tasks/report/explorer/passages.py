"""The passages on which an explorer shows attention."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from headstream.models.repeats import middle_tokens, repeat_tokens, repeated_bigrams
from headstream.tasks.errors import UserError
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.windows import evaluation_text

PASSAGE_TOKENS = 96  # BOS included
N_PASSAGES = 5  # of validation text
N_PERIODS = 4  # of the repeated random tokens
MAX_CHARACTERS = 1 << 20  # of a text that is given
MAX_WINDOWS = 4096  # of validation text among which passages are chosen


class NamedText(NamedTuple):
    """A text that somebody wants to see, and what it is called."""

    name: str
    text: str


def named_text(path: Path) -> NamedText:
    """The beginning of a file, as much as a context may hold.

    Raises:
        UserError: it can't be read, or isn't text in UTF-8.
    """
    try:
        with path.open(encoding="utf-8") as file:
            return NamedText(path.name, file.read(MAX_CHARACTERS))
    except (OSError, UnicodeDecodeError) as error:
        got = error.strerror if isinstance(error, OSError) else "other bytes"
        raise UserError(f"a text must be a file in UTF-8 that can be read, got {path}: {got}. Correct it.") from None


@dataclass(frozen=True)
class Passage:
    """Tokens to look at, BOS first if there is one, and what they are called."""

    name: str
    tokens: Sequence[int]


def passages_of(tokens: Tokens, n_ctx: int) -> list[Passage]:
    """The windows of validation text in which most different bigrams come again, one a document; no model has a say.

    After them come random tokens over and over, of which no text tells what follows.
    """
    n_tokens = min(PASSAGE_TOKENS, n_ctx)
    text, documents = evaluation_text(tokens, n_tokens - 1, MAX_WINDOWS)
    by_repeats = repeated_bigrams(text, tokens.bos).argsort(descending=True, stable=True).tolist()
    first = {int(documents[place]): place for place in reversed(by_repeats)}
    chosen = sorted(first.values(), key=by_repeats.index)[:N_PASSAGES]
    found = [Passage(f"Validation text {i + 1}", text[place].tolist()) for i, place in enumerate(chosen)]
    return [*found, *_repeated(tokens, n_tokens)]


def _repeated(tokens: Tokens, n_tokens: int) -> list[Passage]:
    pool = middle_tokens(torch.from_numpy(tokens.counts), tokens.bos)
    period = min((n_tokens - 1) // N_PERIODS, len(pool))
    if period < 2:
        return []
    generator = torch.Generator().manual_seed(0)
    repeats = repeat_tokens(pool, tokens.bos, torch.tensor([period]), N_PERIODS * period, generator)
    return [Passage(f"{period} random tokens, {N_PERIODS} times over", repeats.tokens[0].tolist())]
