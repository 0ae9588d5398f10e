"""A small corpus and its tokens, made by the real stages, for tests of what comes after them."""

import random
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from tasks.study.corpus_config import CorpusConfig
from tasks.study.tokenizer_config import TokenizerConfig
from tasks.text.corpus_writing import write_corpus
from tasks.text.token_writing import write_tokens

WORDS = ("river", "stream", "head", "spring", "water", "bed", "flows", "down", "under", "over")
WORDS += ("the", "a", "of", "and", "deep", "cold", "clear", "runs", "to", "sea")


@cache
def tiny_text(n_documents: int = 120, seed: int = 0) -> Path:
    """A folder of text files: random sentences over 20 words, about 40 kB."""
    folder = Path(mkdtemp(prefix="headstream-text-"))
    rng = random.Random(seed)
    for i in range(n_documents):
        words = [rng.choice(WORDS) for _ in range(70)]
        (folder / f"{i:04d}.txt").write_text(" ".join(words) + ".\n")
    return folder


@cache
def tiny_tokens(vocabulary: int = 270) -> Path:
    """A folder of token shards of that text."""
    root = Path(mkdtemp(prefix="headstream-tokens-"))
    corpus, tokens = root / "corpus", root / "tokens"
    for folder in (corpus, tokens):
        folder.mkdir()
    write_corpus(CorpusConfig(paths=(str(tiny_text()),), validation_fraction=0.2), corpus)
    write_tokens(TokenizerConfig(vocabulary=vocabulary), corpus, tokens)
    return tokens
