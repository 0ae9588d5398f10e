"""A model from elsewhere as part of a study: the headers of its files, and hashes of their content."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from headstream.models.architecture import Architecture
from headstream.models.bos import NO_BOS
from headstream.tasks.errors import UserError
from headstream.tasks.importing.checkpoint_paths import checkpoint_paths, path_notes, steps_of
from headstream.tasks.importing.foreign_model import ForeignModel, ForeignTokenizer
from headstream.tasks.importing.foreign_tokenizer import given_tokenizer
from headstream.tasks.importing.open_foreign import content_hash, open_foreign
from headstream.tasks.importing.revisions import names_of, tokens_in
from headstream.tasks.importing.shorter_context import with_context
from headstream.tasks.study.cells import Cell
from headstream.tasks.study.imported_model_config import ImportedModelConfig


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint of a model from elsewhere."""

    path: Path
    content: str  # hash of its files
    step: int
    tokens: int | None  # number that it was trained on


@dataclass(frozen=True)
class ImportedCell:
    """A model of [[models]]; `architecture` has the n_ctx on which it is measured."""

    label: str
    config: ImportedModelConfig
    format: str
    architecture: Architecture
    d_vocab: int
    tokenizer: ForeignTokenizer
    bos: int
    notes: tuple[str, ...]
    checkpoints: tuple[Checkpoint, ...]

    @property
    def short_name(self) -> str:
        """A name that distinguishes it from other models of its architecture."""
        return self.label

    @cached_property
    def imported_as(self) -> dict[str, Any]:
        """Everything that decides the weights, the sequences that they are measured on, and the certificate."""
        return {
            "name": self.label,
            "checkpoints": [[each.content, each.step, each.tokens] for each in self.checkpoints],
            "architecture": self.architecture.as_kept(),
            "untrained": self.config.untrained,
            "prompt": self.config.prompt,
        }


ModelCell = Cell | ImportedCell  # a model of a study, to train or to import


def read_imported(configs: Sequence[ImportedModelConfig]) -> list[ImportedCell]:
    """The models of a study's [[models]] sections.

    Raises:
        UserError: one can't be read; says which, why and what to do.
    """
    cells = []
    for config in configs:
        try:
            cells.append(read_imported_cell(config))
        except UserError as error:
            where = f"[[models]] {config.name}"
            raise UserError(str(error) if where in str(error) else f"{where}: {error}") from None
    return cells


def read_imported_cell(config: ImportedModelConfig) -> ImportedCell:
    """The model of one [[models]] section.

    Raises:
        UserError: it can't be read; says why and what to do.
    """
    paths = checkpoint_paths(config)
    found = [open_foreign(path) for path in paths]
    _require_one_training(paths, found)
    hashes = [content_hash(model) for model in found]
    _require_no_copies(paths, hashes)
    steps = steps_of(config, paths, [model.step for model in found])
    tokens = _tokens(config, paths, found)
    first, tokenizer = found[0], _tokenizer(found)
    if config.tokenizer:
        tokenizer = given_tokenizer(Path(config.tokenizer).expanduser(), first.d_vocab)
    if tokenizer is None:
        raise UserError(
            f"there is no tokenizer beside {paths[0]}, and the model needs its own. Give its tokenizer.json:"
            " tokenizer = 'PATH'."
        )
    return ImportedCell(
        label=config.name,
        config=config,
        format=first.format,
        architecture=with_context(first.architecture, config.n_ctx),
        d_vocab=first.d_vocab,
        tokenizer=tokenizer,
        bos=_bos(config, tokenizer),
        notes=(*first.notes, *path_notes(config)),
        checkpoints=tuple(map(Checkpoint, paths, hashes, steps, tokens)),
    )


def _require_one_training(paths: Sequence[Path], found: Sequence[ForeignModel]) -> None:
    first = found[0]
    for path, model in zip(paths, found, strict=True):
        same = (model.architecture, model.d_vocab) == (first.architecture, first.d_vocab)
        if not same or model.tokenizer not in (None, _tokenizer(found)):
            what = "tokenizer" if same else "architecture"
            raise UserError(
                f"{path} has a different {what} from {paths[0]}, so they aren't checkpoints of one training. Give each"
                " model a section of its own."
            )


def _require_no_copies(paths: Sequence[Path], hashes: Sequence[str]) -> None:
    """Refuse checkpoints that are one file under several names, as some public histories have them."""
    for own in dict.fromkeys(hashes):
        copies = [path for path, content in zip(paths, hashes, strict=True) if content == own]
        if len(copies) > 1:
            raise UserError(
                f"{len(copies)} checkpoints hold the same bytes: {names_of(copies)}. Download them again, or remove"
                " all but one."
            )


def _tokenizer(found: Sequence[ForeignModel]) -> ForeignTokenizer | None:
    """The tokenizer of a history, which may lie beside one checkpoint alone."""
    return next((model.tokenizer for model in found if model.tokenizer is not None), None)


def _tokens(
    config: ImportedModelConfig, paths: Sequence[Path], found: Sequence[ForeignModel]
) -> tuple[int | None, ...]:
    if not config.tokens:
        in_names = [tokens_in(path) for path in paths]
        return tuple(
            name if model.tokens is None else model.tokens for model, name in zip(found, in_names, strict=True)
        )
    if len(config.tokens) != len(found):
        raise UserError(
            f"tokens must have one number for each of {len(found)} checkpoints, got {len(config.tokens)}. Correct the"
            " list."
        )
    return config.tokens


def _bos(config: ImportedModelConfig, tokenizer: ForeignTokenizer) -> int:
    if config.bos is None:
        return NO_BOS if tokenizer.bos is None else tokenizer.bos
    if config.bos == "":
        return NO_BOS
    token = tokenizer.id_of(config.bos)
    if token is None:
        raise UserError(
            f"bos must be a token of the model's tokenizer, got {config.bos!r}. Correct it, or leave it out."
        )
    return token
