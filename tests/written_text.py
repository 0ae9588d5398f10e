"""Tokens of a few files, made by the real stages."""

from collections.abc import Mapping
from pathlib import Path

from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.text.corpus_writing import write_corpus
from headstream.tasks.text.token_writing import write_tokens


def write_text(folder: Path, files: Mapping[str, str], vocabulary: int = 300, validation_fraction: float = 0.4) -> Path:
    """Writes the files, their corpus and their tokens below `folder`; returns the folder of the tokens."""
    text, corpus, tokens = folder / "text", folder / "corpus", folder / "tokens"
    for new in (text, corpus, tokens):
        new.mkdir()
    for name, content in files.items():
        (text / name).write_text(content)
    write_corpus(CorpusConfig(paths=(str(text),), validation_fraction=validation_fraction), corpus)
    write_tokens(TokenizerConfig(vocabulary=vocabulary), corpus, tokens)
    return tokens
