"""The import stage: turns a model from elsewhere into an artifact like training's, and certifies it."""

from itertools import islice
from pathlib import Path
from typing import Any

from headstream.models.parameters import count_parameters
from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.importing.certificate import TriedOn, certify
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.imported_cell import Checkpoint, ImportedCell
from headstream.tasks.importing.open_foreign import content_hash, open_foreign
from headstream.tasks.importing.shorter_context import shortened
from headstream.tasks.progress import OnProgress, within
from headstream.tasks.results.model_columns import architecture_columns, model_row
from headstream.tasks.results.tables import write_table
from headstream.tasks.text.corpus_reading import read_documents
from headstream.tasks.text.token_reading import Tokens, require_context
from headstream.tasks.training.checkpoints import checkpoint_sha256, save_checkpoint, write_model_card

MAX_TEXTS = 64  # validation documents that a certificate is based on


def import_model(
    cell: ImportedCell,
    tokens_folder: Path,
    corpus_folder: Path,
    folder: Path,
    *,
    model_id: str,
    corpus_id: str,
    on_progress: OnProgress = lambda fraction: None,
) -> dict[str, Any]:
    """Write checkpoints/, models.parquet and certificates.parquet into `folder`. Returns facts about the model.

    Raises:
        UserError: its files can't be read or have changed, or two checkpoints are the same.
        WorkError: it isn't read as its format defines, or doesn't predict text.
    """
    tokens = Tokens.open(tokens_folder)
    require_context(tokens, cell.architecture.n_ctx)
    texts = [document.text for document in islice(read_documents(corpus_folder, "validation"), MAX_TEXTS)]
    model = Transformer(cell.architecture, cell.d_vocab).eval().requires_grad_(False)
    seen: dict[str, Checkpoint] = {}
    certificates: list[dict[str, Any]] = []
    n = len(cell.checkpoints)
    for i, checkpoint in enumerate(cell.checkpoints):
        tell = within(on_progress, i / n, (i + 1) / n)
        foreign = _take_over(checkpoint, model, folder, tell)
        same = seen.setdefault(checkpoint_sha256(folder, checkpoint.step), checkpoint)
        if same is not checkpoint:
            raise UserError(
                f"two checkpoints hold the same weights: {same.path} and {checkpoint.path}. Download them again, or"
                " remove one."
            )
        tell(0.3)
        if i in (0, n - 1):
            checks = certify(
                model,
                foreign,
                TriedOn(tokens, texts, cell.config.prompt),
                untrained=cell.config.untrained or i + 1 < n,
                on_progress=within(tell, 0.3, 1.0),
            )
            certificates += [{"step": checkpoint.step, **check} for check in checks]
        tell(1.0)
    if cell.notes:
        certificates.append({"step": checkpoint.step, "checked": "notes", "detail": "; ".join(cell.notes)})
    write_model_card(folder, model, {each.step: each.tokens for each in cell.checkpoints})
    facts = {
        "model_id": model_id,
        "corpus_id": corpus_id,
        "name": cell.architecture.name,
        "vocabulary": cell.d_vocab,
        "parameters": count_parameters(model),
        "steps": cell.checkpoints[-1].step,
        "tokens": cell.checkpoints[-1].tokens,
        "checkpoints": n,
        "imported_from": cell.format,
        "imported_as": cell.label,
    }
    write_table(folder, "models", [model_row(architecture_columns(cell.architecture) | facts)])
    write_table(folder, "certificates", [{"model_id": model_id, **row} for row in certificates])
    return facts


def _take_over(checkpoint: Checkpoint, model: Transformer, folder: Path, on_progress: OnProgress) -> ForeignModel:
    """Read the weights of a checkpoint into the model, and save them below `folder`."""
    foreign = open_foreign(checkpoint.path)
    if content_hash(foreign) != checkpoint.content:
        raise UserError(f"{checkpoint.path} changed while it was being read. Run again once it is complete.")
    on_progress(0.1)
    model.load_state_dict(shortened(foreign.read_weights(), model.architecture))
    on_progress(0.2)
    save_checkpoint(folder, model, checkpoint.step)
    return foreign
