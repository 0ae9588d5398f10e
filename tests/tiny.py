"""A small corpus and its tokens, made by the real stages, for tests of what comes after them."""

import random
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from tasks.corpus import CorpusConfig, write_corpus
from tasks.tokens import TokenizerConfig, write_tokens

WORDS = [
    "river",
    "stream",
    "head",
    "spring",
    "water",
    "bed",
    "flows",
    "down",
    "under",
    "over",
    "the",
    "a",
    "of",
    "and",
    "deep",
    "cold",
    "clear",
    "runs",
    "to",
    "sea",
]


@cache
def tiny_tokens(vocabulary: int = 270, n_documents: int = 120, seed: int = 0) -> Path:
    """A folder of token shards: random sentences over 22 words, about 40 kB."""
    root = Path(mkdtemp(prefix="headstream-tiny-"))
    rng = random.Random(seed)
    text, corpus, tokens = root / "text", root / "corpus", root / "tokens"
    for folder in (text, corpus, tokens):
        folder.mkdir()
    for i in range(n_documents):
        words = [rng.choice(WORDS) for _ in range(70)]
        (text / f"{i:04d}.txt").write_text(" ".join(words) + ".\n")
    write_corpus(CorpusConfig(paths=(str(text),), validation_fraction=0.2), corpus)
    write_tokens(TokenizerConfig(vocabulary=vocabulary), corpus, tokens)
    return tokens
