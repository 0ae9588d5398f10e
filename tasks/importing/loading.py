"""A model from elsewhere, loaded to be asked at once: without a study, and without a text that it is measured on."""

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.importing.imported_cell import read_imported_cell
from headstream.tasks.importing.open_foreign import GGUF, SAFETENSORS, TORCH, open_foreign
from headstream.tasks.importing.shorter_context import shortened, with_context
from headstream.tasks.study.imported_model_config import ImportedModelConfig
from headstream.tasks.text.vocabulary import Vocabulary, VocabularyWithoutText

MAX_LOADED_CONTEXT = 2048  # tokens that it reads at most, unless more are asked for


def model_path(source: str) -> Path | None:
    """The file or folder of a model, given by its path or by an installed package that holds it; None if by neither.

    Raises:
        UserError: the package holds no model, or several.
    """
    path = Path(source).expanduser()
    if path.exists():
        return path
    try:
        there = files(source) or []
    except (PackageNotFoundError, ValueError):
        return None
    found = [each for each in there if each.suffix in (*TORCH, SAFETENSORS, GGUF)]
    if len(found) != 1:
        models = ", ".join(str(each.locate()) for each in found) or "none"
        raise UserError(f"the package {source} must hold one model, got {models}. Give the path of one.")
    return Path(str(found[0].locate()))


def load_foreign(
    path: Path, n_ctx: int | None = None, tokenizer: str | None = None, bos: str | None = None
) -> tuple[Transformer, Vocabulary]:
    """The model in a file or folder, in any format that `headstream inspect` reads, and its vocabulary.

    Of several checkpoints it is the last. `n_ctx` is the most tokens that it will read; `tokenizer` and `bos` are as in
    a study's [[models]].

    Raises:
        UserError: there is no model, it has no tokenizer, or it can't read so many tokens.
    """
    cell = read_imported_cell(ImportedModelConfig(name="model", path=str(path), tokenizer=tokenizer, bos=bos))
    foreign = open_foreign(cell.checkpoints[-1].path)
    architecture = with_context(foreign.architecture, n_ctx or min(foreign.architecture.n_ctx, MAX_LOADED_CONTEXT))
    transformer = Transformer(architecture, cell.d_vocab).eval().requires_grad_(False)
    transformer.load_state_dict(shortened(foreign.read_weights(), architecture))
    return transformer, VocabularyWithoutText(cell.tokenizer.read(), cell.d_vocab, cell.bos)
