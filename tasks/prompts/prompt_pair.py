"""A pair of prompts as text, before any tokenizer has read it."""

from typing import NamedTuple


class PromptPair(NamedTuple):
    """Two prompts that differ in what a behaviour depends on, and texts that would be right or wrong to go on with."""

    prompt: str
    corrupt: str
    answers: tuple[str, ...]
    wrong: tuple[str, ...]
    template: str  # pairs of one template are alike, and are one cluster
    line: int | None = None  # of the file that it is from
