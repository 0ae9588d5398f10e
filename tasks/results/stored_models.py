"""Models of studies that have run: what they are called, and where their weights lie."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.results.warehouse_reading import attach_warehouse
from headstream.tasks.storage.artifact import MAKE_MODELS
from headstream.tasks.storage.store import Store

MAX_LISTED_MODELS = 12  # models in an error

_NAMED = """
    SELECT DISTINCT model_id, label, study, labelled_models.seed
    FROM labelled_models JOIN models USING (model_id)
    WHERE (study = $study OR $study IS NULL)
    AND ($name IS NULL OR list_contains([label, cell, models.name, model_id], $name))
    ORDER BY study, label, seed, model_id
"""


@dataclass(frozen=True)
class NamedModel:
    """A model as people call it."""

    model_id: str
    label: str
    study: str
    seed: int | None

    def __str__(self) -> str:
        seed = "" if self.seed is None else f" seed={self.seed}"
        return f"{self.label}{seed} of {self.study} ({self.model_id})"


def named_model(warehouse: Path, name: str, study: str | None) -> NamedModel:
    """The model that has a label like 2L4H in reports, or a place in a grid, or an id, in one study or any.

    Raises:
        UserError: that doesn't name one model.
    """
    found = _models(warehouse, name, study)
    if len({model.model_id for model in found}) == 1:
        return found[0]
    listed = found or _models(warehouse, None, study)
    more = f" and {len(listed) - MAX_LISTED_MODELS} more" if len(listed) > MAX_LISTED_MODELS else ""
    ids = {model.model_id for model in found}
    named = f"{len(ids)} models are called {name!r}" if ids else f"no model is called {name!r}"
    raise UserError(f"{named}. Choose an id: {'; '.join(map(str, listed[:MAX_LISTED_MODELS])) or 'none'}{more}.")


def stored_folders(store: Store, model_id: str, study: str) -> tuple[Path, Path]:
    """The folders of a model's checkpoints and of its tokens, verified.

    Raises:
        WorkError: they aren't there as they were written.
    """
    for stage in MAKE_MODELS:
        for artifact in store.artifacts(stage):
            if artifact.manifest.facts["model_id"] != model_id:
                continue
            model = store.open(stage, artifact.manifest.key)
            tokens = model and store.open("tokens", model.manifest.inputs["tokens"].key)
            if model and tokens:
                return model.folder, tokens.folder
    raise WorkError(
        f"weights or tokens of {model_id} are missing from the store, or damaged. Run `headstream run {study}` again."
    )


def _models(warehouse: Path, name: str | None, study: str | None) -> Sequence[NamedModel]:
    with duckdb.connect() as connection:
        attach_warehouse(connection, warehouse)
        rows = connection.execute(_NAMED, {"name": name, "study": study}).fetchall()
    return [NamedModel(*row) for row in rows]
