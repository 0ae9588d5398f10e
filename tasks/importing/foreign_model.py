"""What a model from elsewhere is, whatever format it came in."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer
from torch import Tensor

from headstream.models.architecture import Architecture


@dataclass(frozen=True)
class ForeignTokenizer:
    """The tokenizer that came with a model, and which token its training put before a document."""

    json: str  # what tokenizers.Tokenizer.from_str reads
    entries: int  # one more than the largest id
    bos: int | None  # None: it was trained without

    def read(self) -> Tokenizer:
        """The tokenizer itself. It may put tokens around a text that it takes for special, unless told not to."""
        return Tokenizer.from_str(self.json)

    def id_of(self, token: str) -> int | None:
        """The id of a token as the vocabulary spells it."""
        return self.read().token_to_id(token)


@dataclass(frozen=True)
class ForeignModel:
    """A model from elsewhere: its header read and checked, its weights not yet.

    `read_weights` gives every parameter of the `Transformer` by name: finite float32, of the shapes that the
    architecture has. It raises UserError.
    """

    format: str  # such as "huggingface gpt2", "nanogpt", "transformer-lens", "gguf llama", "headstream"
    files: tuple[Path, ...]  # all that decide it: weights, config, tokenizer
    architecture: Architecture  # n_ctx is the longest that the model can read
    d_vocab: int
    tokenizer: ForeignTokenizer | None  # None: none came with it
    dtype: str  # of the weights as they are stored
    notes: tuple[str, ...]  # what a reader of results must be told
    read_weights: Callable[[], dict[str, Tensor]]
    step: int | None = None  # of its training, and the tokens that it had read by then, where the file says so
    tokens: int | None = None
