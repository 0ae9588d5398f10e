"""The [tokenizer] section of a study: the training of its tokenizer."""

from pydantic import BaseModel, Field


class TokenizerConfig(BaseModel, frozen=True, extra="forbid", strict=True):
    """The training of a study's tokenizer."""

    vocabulary: int = Field(
        512, ge=257, le=1 << 20, description="Tokens in the vocabulary: BOS, the 256 bytes and the merges."
    )
    sample_bytes: int = Field(
        16 << 20, ge=1, le=1 << 40, description="Bytes of training text from which the tokenizer learns its merges."
    )
