"""What a run of a study would do: each step's state, why, and how long and how large what is missing will be."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from tasks import steps
from tasks.analysis_config import AnalysisConfig
from tasks.cell import Cell
from tasks.claims import read_claims, undecidable
from tasks.corpus import CorpusConfig
from tasks.device import training_flops
from tasks.manifest import Artifact, Request
from tasks.store import Store
from tasks.tables import table_schema
from tasks.tokens import TokenizerConfig
from tasks.training import model_columns
from tasks.training_run import kept_steps, step_count
from tasks.warehouse import create_tables_and_views

# What one core does, roughly: used where this store has no earlier artifact to go by.
FLOPS_PER_SECOND = 80e9
CORPUS_BYTES_PER_SECOND = 10e6
SECONDS_PER_CHECKPOINT = 1.5
BYTES_PER_PARAMETER = 4


@dataclass(frozen=True)
class PlannedStep:
    """One step of a study: done or to run, why, and for what is to run its seconds on one core and its bytes."""

    step: str
    subject: str
    done: bool
    why: str
    seconds: float = 0.0
    bytes: int = 0


def plan_steps(
    text: CorpusConfig, tokenizer: TokenizerConfig, cells: Sequence[Cell], analysis: AnalysisConfig
) -> Iterator[PlannedStep]:
    """Every step that a study's artifacts need, in order."""
    store = steps.open_store()
    request = steps.corpus_request(text)
    corpus_bytes = request.config["files"]["bytes"]
    seconds = corpus_bytes / CORPUS_BYTES_PER_SECOND
    documents, planned = _look(store, request, "documents", seconds / 2, corpus_bytes // 3)
    yield planned
    encoded = None
    if documents is None:
        yield PlannedStep("tokens", "tokens", False, "its corpus will be read first", seconds, corpus_bytes)
    else:
        request = steps.tokens_request(tokenizer, documents)
        encoded, planned = _look(store, request, "tokens", seconds, corpus_bytes)
        yield planned
    for cell in cells:
        yield from _plan_model(store, cell, encoded, tokenizer.vocabulary, analysis)


def plan_claims(study: str, config: Mapping[str, Any], vocabulary: int, cells: Sequence[Cell]) -> dict[str, str | None]:
    """What a study lacks to decide each claim of reports/claims; None if it lacks nothing.

    Raises:
        RequestError: a claim's file is wrong.
    """
    rows = {
        "studies": [{"study": study, "config": json.dumps(config)}],
        "study_models": [{"study": study, "model_id": cell.label, "cell": cell.label} for cell in cells],
        "models": [
            model_columns(cell.architecture, cell.training)
            | {"model_id": cell.label, "parameters": _parameters(cell, vocabulary)}
            for cell in cells
        ],
    }
    with duckdb.connect() as connection:
        create_tables_and_views(connection)
        for name, planned in rows.items():
            connection.register("planned", pa.Table.from_pylist(planned, schema=table_schema(name)))
            connection.execute(f"INSERT INTO {name} BY NAME FROM planned")
        return undecidable(connection, read_claims(), study)


def _plan_model(
    store: Store, cell: Cell, encoded: Artifact | None, vocabulary: int, analysis: AnalysisConfig
) -> Iterator[PlannedStep]:
    flops = training_flops(cell.architecture, vocabulary, cell.training.tokens)
    seconds = flops / _training_speed(store)
    n_checkpoints = len(kept_steps(step_count(cell.architecture, cell.training), cell.training.checkpoints))
    size = BYTES_PER_PARAMETER * n_checkpoints * _parameters(cell, vocabulary)
    if encoded is None:
        yield PlannedStep("training", cell.label, False, "its tokens will be made first", seconds, size)
        model = None
    else:
        model, planned = _look(store, steps.training_request(cell, encoded), cell.label, seconds, size)
        yield planned
    seconds = SECONDS_PER_CHECKPOINT * n_checkpoints
    for stage in analysis.stages:
        if model is None or encoded is None:
            yield PlannedStep(stage, cell.label, False, "its model will be trained first", seconds)
        else:
            yield _look(store, steps.analysis_request(stage, analysis, model, encoded), cell.label, seconds, 0)[1]


def _look(
    store: Store, request: Request, subject: str, seconds: float, size: int
) -> tuple[Artifact | None, PlannedStep]:
    if artifact := store.find(request):
        return artifact, PlannedStep(request.stage, subject, True, f"made {artifact.manifest.created[:16]}")
    return None, PlannedStep(request.stage, subject, False, _why_missing(store, request), seconds, size)


def _why_missing(store: Store, request: Request) -> str:
    """What keeps the nearest earlier artifact from being the one asked for."""
    reasons = set()
    for artifact in store.artifacts(request.stage):
        earlier = artifact.manifest
        if earlier.config == request.config:
            same_inputs = {r: i.digest for r, i in earlier.inputs.items()} == {
                r: a.digest for r, a in request.inputs.items()
            }
            if earlier.code_version == request.code_version:
                reasons.add("the device or threads changed" if same_inputs else "its input changed")
            elif same_inputs:
                reasons.add("the code changed")
    return ", or ".join(sorted(reasons)) or "not made yet"


def _training_speed(store: Store) -> float:
    """FLOPs a second of the trainings in the store."""
    done = [a.manifest.facts for a in store.artifacts("training")]
    seconds = sum(facts["seconds"] for facts in done)
    return sum(facts["flops"] for facts in done) / seconds if seconds else FLOPS_PER_SECOND


def _parameters(cell: Cell, vocabulary: int) -> int:
    a = cell.architecture
    heads = sum(a.heads_per_layer) * 2 * a.d_model * (a.head_width + a.value_width)
    return heads + a.n_layers * 2 * a.d_model * a.mlp_width + 2 * a.d_model * vocabulary
