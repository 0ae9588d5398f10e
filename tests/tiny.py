"""A small corpus and its tokens, made by the real stages, for tests of what comes after them."""

import json
import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from headstream.models.bos import NO_BOS
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.text.corpus_writing import write_corpus
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.token_writing import write_given_tokens, write_tokens

FOLDER = TemporaryDirectory(prefix="headstream-tests-")  # goes with the process
WORDS = ("river", "stream", "head", "spring", "water", "bed", "flows", "down", "under", "over")
WORDS += ("the", "a", "of", "and", "deep", "cold", "clear", "runs", "to", "sea")


@cache
def tiny_text(n_documents: int = 120, seed: int = 0) -> Path:
    """A folder of text files: random sentences over 20 words, about 40 kB."""
    folder = Path(mkdtemp(prefix="text-", dir=FOLDER.name))
    rng = random.Random(seed)
    for i in range(n_documents):
        words = [rng.choice(WORDS) for _ in range(70)]
        (folder / f"{i:04d}.txt").write_text(" ".join(words) + ".\n")
    return folder


@cache
def tiny_tokens(vocabulary: int = 270) -> Path:
    """A folder of token shards of that text."""
    root = Path(mkdtemp(prefix="tokens-", dir=FOLDER.name))
    corpus, tokens = root / "corpus", root / "tokens"
    for folder in (corpus, tokens):
        folder.mkdir()
    write_corpus(CorpusConfig(paths=(str(tiny_text()),), validation_fraction=0.2), corpus)
    write_tokens(TokenizerConfig(vocabulary=vocabulary), corpus, tokens)
    return tokens


@cache
def tokens_without_bos() -> Path:
    """A folder of tokens of that text as a model without BOS reads it, by a given tokenizer."""
    root = Path(mkdtemp(prefix="given-", dir=FOLDER.name))
    corpus, tokens = root / "corpus", root / "tokens"
    for folder in (corpus, tokens):
        folder.mkdir()
    write_corpus(CorpusConfig(paths=(str(tiny_text()),), validation_fraction=0.2), corpus)
    given = Tokens.open(tiny_tokens())
    write_given_tokens(given.tokenizer.to_str(), NO_BOS, given.vocabulary + 3, corpus, tokens)
    return tokens


@cache
def letter_tokens(vocabulary: int = 43) -> Path:
    """A folder of tokens over so small a vocabulary that models with a dimension a token are small: those of
    `tiny_tokens`, dealt out among letters.
    """
    source, folder = tiny_tokens(), Path(mkdtemp(prefix="letters-", dir=FOLDER.name))
    about = json.loads((source / "tokens.json").read_text())
    counts = np.zeros(vocabulary, np.int64)
    for split, shards in about["shards"].items():
        for shard in shards:
            tokens = np.fromfile(source / shard["name"], about["dtype"])
            dealt = np.where(tokens == about["bos"], about["bos"], 1 + tokens % (vocabulary - 1)).astype(about["dtype"])
            dealt.tofile(folder / shard["name"])
            counts += np.bincount(dealt, minlength=vocabulary) * (split == "train")
    (folder / "tokens.json").write_text(json.dumps(about | {"vocabulary": vocabulary}))
    np.save(folder / "token_counts.npy", counts)
    letters = {chr(0x21 + i): i for i in range(vocabulary)}
    Tokenizer(WordLevel(letters, unk_token="!")).save(str(folder / "tokenizer.json"))
    return folder
