"""Claims that a study could decide, before it has run, and warnings that they may not look at its models."""

import json
from collections.abc import Iterator

import duckdb
import pyarrow as pa

from headstream.tasks.graph import artifact_specs
from headstream.tasks.results.claim_files import read_claims
from headstream.tasks.results.claims import lacking_for_claims
from headstream.tasks.results.model_columns import architecture_columns, model_row
from headstream.tasks.results.tables import table_schema
from headstream.tasks.results.views import create_tables_and_views
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.study.schema import Study
from headstream.tasks.training.trained_columns import model_columns
from headstream.tasks.words.little_to_induce import LITTLE_TO_INDUCE, little_to_induce

FEW_TOKENS = 1_000_000  # to train on, below which a model may end no better than bigrams


def plan_claims(study: Study) -> dict[str, str | None]:
    """For each claim of reports/claims, what the study lacks to decide it; None if it lacks nothing.

    Raises:
        UserError: a claim's file is wrong.
    """
    config = study.model_dump(mode="json", exclude_none=True)
    models = {**_trained_models(study), **_imported_models(study)}
    rows = {
        "studies": [{"study": study.name, "config": json.dumps(config)}],
        "study_models": [{"study": study.name, "model_id": label, "cell": label} for label in models],
        "models": list(models.values()),
    }
    with duckdb.connect() as connection:
        create_tables_and_views(connection)
        for name, planned in rows.items():
            connection.register("planned", pa.Table.from_pylist(planned, schema=table_schema(name)))
            connection.execute(f"INSERT INTO {name} BY NAME FROM planned")
        return lacking_for_claims(connection, read_claims(), study.name)


def _trained_models(study: Study) -> dict[str, dict[str, object]]:
    """The rows of `models` that trainings will write, as far as they are known, by label."""
    return {
        cell.label: {
            **model_columns(cell.architecture, cell.training),
            "model_id": cell.label,
            "parameters": cell.parameters(study.tokenizer.vocabulary),
        }
        for cell in study.cells
    }


def _imported_models(study: Study) -> dict[str, dict[str, object]]:
    """The rows of `models` that imports will write, as far as they are known, by label."""
    if not study.models:
        return {}
    from headstream.tasks.importing.imported_cell import read_imported  # imports torch

    return {
        cell.label: model_row(
            {
                **architecture_columns(cell.architecture),
                "model_id": cell.label,
                "imported_as": cell.label,
                "imported_from": cell.format,
            }
        )
        for cell in read_imported(study.models)
    }


def training_warnings(study: Study) -> Iterator[str]:
    """Warnings where models may learn too little for claims to look at them: few tokens, and text without repeats."""
    short = [cell.training.tokens for cell in study.cells if cell.training.tokens < FEW_TOKENS]
    if short:
        yield (
            f"Models trained on {min(short):,} tokens may not get below the loss of bigrams, and findings look only at"
            " those that do. Raise training.tokens."
        )
    share = _share_to_induce(study)
    if share is not None and share < LITTLE_TO_INDUCE:
        yield f"{little_to_induce(share)} Take text that repeats itself more, or raise n_ctx."


def _share_to_induce(study: Study) -> float | None:
    """The share that induction could add to bigrams in the longest context of the study; None without tokens yet."""
    store = open_store()
    corpus = store.find(artifact_specs.corpus_spec(study.corpus)) if study.trains else None
    tokens = store.find(artifact_specs.tokens_spec(study.tokenizer, corpus)) if corpus else None
    if not tokens:
        return None
    longest = max(cell.architecture.n_ctx for cell in study.cells)
    rows = reversed(tokens.manifest.facts["repeats"])
    return next((row["beyond_bigrams_share"] for row in rows if row["context"] <= longest), None)
