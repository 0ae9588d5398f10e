"""A model from elsewhere, in whatever format it came."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer
from torch import Tensor

from headstream.models.architecture import Architecture


@dataclass(frozen=True)
class ForeignTokenizer:
    """The tokenizer that came with a model, and the token that training put before each document."""

    json: str  # for tokenizers.Tokenizer.from_str
    entries: int  # one more than the largest id
    bos: int | None  # None: it was trained without

    def read(self) -> Tokenizer:
        """The tokenizer itself. By default it may add special tokens around a text."""
        return Tokenizer.from_str(self.json)

    def id_of(self, token: str) -> int | None:
        """The id of a token, spelled as in the vocabulary."""
        return self.read().token_to_id(token)


@dataclass(frozen=True)
class ForeignModel:
    """A model from elsewhere: its header has been read and checked, its weights haven't.

    `read_weights` returns every parameter of the `Transformer` by name: finite, float32, and of the architecture's
    shapes; or raises UserError. `check_weights` raises it, too, and keeps nothing in memory.
    """

    format: str  # such as "huggingface gpt2", "nanogpt", "transformer-lens", "gguf llama", "headstream"
    files: tuple[Path, ...]  # all that define it: weights, config, tokenizer
    architecture: Architecture  # n_ctx is the longest sequence that the model can read
    d_vocab: int
    tokenizer: ForeignTokenizer | None  # None: none came with it
    dtype: str  # of the weights as they are stored
    notes: tuple[str, ...]  # for readers of its results
    read_weights: Callable[[], dict[str, Tensor]]
    check_weights: Callable[[], object]
    step: int | None = None  # of its training, and the tokens read by then, if the file says so
    tokens: int | None = None
