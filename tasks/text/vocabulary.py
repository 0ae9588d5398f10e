"""A tokenizer's vocabulary: which token opens a sequence, how tokens are spelled, and how often a text has each."""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from headstream.tasks.text.token_spelling import Readable, distinct_labels, spelled_tokens


class Vocabulary(ABC):
    """Tokens by their ids, from 0 to `vocabulary` - 1.

    `bos` is NO_BOS, an id that no token has, for models that were trained without BOS.
    """

    vocabulary: int
    bos: int

    @property
    @abstractmethod
    def tokenizer(self) -> Tokenizer:
        """What turns text into tokens."""

    @property
    @abstractmethod
    def counts(self) -> npt.NDArray[np.int64]:
        """The number of occurrences of each token in a text: [vocabulary]."""

    @cached_property
    def token_bytes(self) -> list[bytes]:
        """The bytes of each token; for one without any, such as BOS, its name."""
        return spelled_tokens(self.tokenizer, self.vocabulary)

    def token_labels(self) -> list[str]:
        r"""Each token in a form for plots, unlike any other: a space as `·`, a line end as `\n`, a lone byte as `\xe2`.

        A dot of the text itself is `\u00b7`.
        """
        return distinct_labels(self.tokenizer, self.token_bytes, Readable({" ": "·"}, "·"))


class VocabularyWithoutText(Vocabulary):
    """The vocabulary of a model that no text is known for: all of its tokens count the same, special ones nothing."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: int, bos: int) -> None:
        self._tokenizer, self.vocabulary, self.bos = tokenizer, vocabulary, bos

    @property
    def tokenizer(self) -> Tokenizer:
        """What turns text into tokens."""
        return self._tokenizer

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """1 for each token that text can have, else 0: [vocabulary]."""
        counts = np.zeros(self.vocabulary, np.int64)
        of_text = {*self._tokenizer.get_vocab().values()} - {*self._tokenizer.get_added_tokens_decoder()}
        counts[[token for token in of_text if token < self.vocabulary]] = 1
        return counts
