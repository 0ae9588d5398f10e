"""The steps that make a text: the corpus, and its tokens."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headstream.tasks.errors import TextChanged
from headstream.tasks.graph.artifact_specs import corpus_spec, given_tokens_spec, tokens_spec
from headstream.tasks.graph.making import find_or_make
from headstream.tasks.importing.imported_cell import ImportedCell, ModelCell
from headstream.tasks.steps.prefect_step import alone, step
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.schema import Study
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.text import token_writing
from headstream.tasks.text.corpus_writing import write_corpus
from headstream.tasks.text.token_reading import Tokens, require_context
from headstream.tasks.text.token_writing import write_tokens


@step("read the corpus")
def read_corpus(config: CorpusConfig) -> Artifact:
    """Documents of the corpus, cleaned and split."""
    spec = corpus_spec(config)

    def read(**options: Any) -> dict[str, Any]:
        facts = write_corpus(config, **options)
        if corpus_spec(config).key != spec.key:
            raise TextChanged(
                "the files of a corpus must not change while they are read, but some did."
                " Run again when they are at rest, or read a copy."
            )
        return facts

    return find_or_make(spec, "documents", read, apart=False)


@step("tokenise")
def tokenise(config: TokenizerConfig, corpus: Artifact) -> Artifact:
    """Tokenizer, and both splits as token shards."""
    spec = tokens_spec(config, corpus)
    incidental = token_writing.INCIDENTAL_FILES
    return find_or_make(spec, "tokens", write_tokens, config, corpus.folder, incidental=incidental, apart=False)


@step("tokenise for {cell.label}")
def tokenise_for(cell: ImportedCell, corpus: Artifact) -> Artifact:
    """Both splits as token shards, by the tokenizer of a model from elsewhere."""
    work = (token_writing.write_given_tokens, cell.tokenizer.json, cell.bos, cell.d_vocab, corpus.folder)
    incidental = token_writing.INCIDENTAL_FILES
    return find_or_make(given_tokens_spec(cell, corpus), cell.label, *work, incidental=incidental, apart=False)


def make_tokens(study: Study, imported: Sequence[ImportedCell], corpus: Artifact) -> None:
    """Tokens of the corpus, outside of any flow.

    Raises:
        UserError: a model of the study can't be trained or measured on them.
    """
    tokens: dict[ModelCell, Artifact] = {cell: alone(tokenise_for, cell, corpus) for cell in imported}
    if study.trains:
        own = alone(tokenise, study.tokenizer, corpus)
        tokens |= dict.fromkeys(study.cells, own)
    require_text(tokens)


def require_text(tokens: Mapping[ModelCell, Artifact]) -> None:
    """Raises UserError when a split of its text doesn't fill a model's context."""
    longest: dict[Path, int] = {}
    for cell, text in tokens.items():
        longest[text.folder] = max(cell.architecture.n_ctx, longest.get(text.folder, 0))
    for folder, n_ctx in longest.items():
        require_context(Tokens.open(folder), n_ctx)
