"""The command `headstream export`: writes a model of the store in another format, at one checkpoint or at all."""

from pathlib import Path

from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.importing.model_export import export_checkpoints
from headstream.tasks.results.stored_models import named_model, stored_folders
from headstream.tasks.results.warehouse import build_warehouse
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.training.checkpoints import checkpoint_steps
from headstream.tasks.words.plain_text import terminal_safe


def export_model(name: str, folder: Path, format: str, study: str | None, step: int | None, all_steps: bool) -> None:
    """Write a model, and print what was written, with notes for the user.

    Raises:
        UserError: the name doesn't fit exactly one model, it has no checkpoint at that step, or the format can't
            represent it.
    """
    store = open_store()
    build_warehouse(store, places.warehouse_file())
    model = named_model(places.warehouse_file(), name, study)
    weights, tokens = stored_folders(store, model.model_id, model.study)
    kept = checkpoint_steps(weights)
    if step is not None and step not in kept:
        raise UserError(f"no weights were kept at step {step}. Choose one of {', '.join(map(str, kept))}.")
    steps = kept if all_steps else [kept[-1] if step is None else step]
    notes = export_checkpoints(format, weights, tokens, steps, folder.expanduser())
    after = f"steps {', '.join(map(str, steps))}" if all_steps else f"step {steps[0]}"
    for line in (f"{model} after {after}: {folder}", *notes):
        print(terminal_safe(line))
