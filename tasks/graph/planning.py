"""What a run of a study would do: each artifact's state, why, and how long and how large what is missing will be."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import duckdb
import pyarrow as pa

from headstream.tasks import places
from headstream.tasks.errors import WorkError
from headstream.tasks.graph import artifact_specs
from headstream.tasks.graph.estimates import (
    CORPUS_BYTES_PER_SECOND,
    COSTS_SECONDS,
    FLOPS_PER_SECOND,
    seconds_of_analyses,
    seconds_of_import,
)
from headstream.tasks.graph.making import open_store
from headstream.tasks.importing.imported_cell import ImportedCell, read_imported
from headstream.tasks.results.claim_files import read_claims
from headstream.tasks.results.claims import lacking_for_claims
from headstream.tasks.results.model_columns import architecture_columns, model_row
from headstream.tasks.results.tables import table_schema
from headstream.tasks.results.views import create_tables_and_views
from headstream.tasks.storage.artifact import Artifact, Spec
from headstream.tasks.storage.store import Store
from headstream.tasks.studies.housekeeping import artifact_bytes
from headstream.tasks.study.analysis_config import Stage
from headstream.tasks.study.cells import Cell, matrix_entries
from headstream.tasks.study.schema import Study
from headstream.tasks.text.repeated_text import LITTLE_TO_INDUCE, little_to_induce
from headstream.tasks.training.device import resolve_numerics, training_flops
from headstream.tasks.training.loop import kept_steps, step_count
from headstream.tasks.training.model_training import model_columns

SHARED = ("corpus", "tokens", "costs")  # stages that are not of a model

BYTES_PER_PARAMETER = 4
RESUME_CHECKPOINTS = 4  # what a running training keeps besides: weights, and the state of its optimisers
BYTES_PER_RESULT = 100_000
PRUNED_MODELS = 7  # in checkpoints
BYTES_INDEXED_PER_MODEL = 1_000_000
FEW_TOKENS = 1_000_000  # to train on, below which a model may end no better than bigrams


@dataclass(frozen=True)
class PlannedArtifact:
    """An artifact that a study needs: made or to make, why, and what making it takes: seconds of one core, bytes."""

    stage: str
    subject: str
    done: bool
    why: str
    seconds: float = 0.0
    bytes: int = 0
    is_shared: bool = False  # by all models


def plan_artifacts(study: Study) -> list[PlannedArtifact]:
    """Every artifact that a study needs, in the order in which they are made.

    A corpus or tokens that changed code will make again are taken to come out the same: what follows them says so.
    """
    return list(_plan(study, _Shelf(open_store())))


def _plan(study: Study, shelf: "_Shelf") -> Iterator[PlannedArtifact]:
    spec = artifact_specs.corpus_spec(study.corpus)
    corpus_bytes = spec.config["files"]["bytes"]
    seconds = corpus_bytes / CORPUS_BYTES_PER_SECOND
    corpus, planned = shelf.look(spec, "documents", seconds / 2, corpus_bytes // 3)
    yield replace(planned, is_shared=True)

    def look_for_tokens(subject: str, spec_of: Callable[[Artifact], Spec]) -> tuple[Artifact | None, PlannedArtifact]:
        if corpus is None:
            why = "its corpus will be read first"
            return None, PlannedArtifact("tokens", subject, False, why, seconds, corpus_bytes)
        return shelf.look(spec_of(corpus), subject, seconds, corpus_bytes)

    if study.trains:
        tokens, planned = look_for_tokens("tokens", partial(artifact_specs.tokens_spec, study.tokenizer))
        yield replace(planned, is_shared=True)
    if study.measures_costs:
        spec = artifact_specs.costs_spec(study.costs, study.name)
        yield replace(shelf.look(spec, study.name, shelf.costs_seconds(), BYTES_PER_RESULT)[1], is_shared=True)
    for cell in study.cells:
        yield from _plan_model(study, cell, shelf, tokens)
    for imported in read_imported(study.models):
        tokens, planned = look_for_tokens(imported.label, partial(artifact_specs.given_tokens_spec, imported))
        yield planned
        yield from _plan_imported(study, imported, shelf, tokens)


def require_space(planned: Iterable[PlannedArtifact]) -> None:
    """Raises WorkError when the disk has no room for what is to run, and for the warehouse that comes of it."""
    to_run = [step for step in planned if not step.done]
    if not to_run:
        return
    folder, warehouse = places.home(), places.warehouse_file()
    indexed = BYTES_INDEXED_PER_MODEL * len({step.subject for step in to_run})
    copy = warehouse.stat().st_size if warehouse.exists() else 0
    needed = sum(step.bytes for step in to_run) + 2 * indexed + copy  # it is built beside the one that is read
    free = shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free
    if needed > free:
        raise WorkError(
            f"{folder} must have room for what the study will write, about {needed / 1e6:,.0f} MB, got"
            f" {free / 1e6:,.0f} MB free. Free disk space (`headstream gc` removes what no study needs), or shorten the"
            " grid or `checkpoints`."
        )


def seconds_left(planned: Iterable[PlannedArtifact], jobs: int) -> float:
    """How long what is to run takes, so many models at a time: text and costs run alone, on one core."""
    to_run = [step for step in planned if not step.done]
    models = [step.seconds for step in to_run if not step.is_shared]
    return sum(step.seconds for step in to_run if step.is_shared) + max([sum(models) / jobs, *models])


def plan_claims(study: Study) -> dict[str, str | None]:
    """What a study lacks to decide each claim of reports/claims; None if it lacks nothing.

    Raises:
        UserError: a claim's file is wrong.
    """
    config = study.model_dump(mode="json", exclude_none=True)
    imported = read_imported(study.models)
    labels = [*(cell.label for cell in study.cells), *(cell.label for cell in imported)]
    models = [
        model_columns(cell.architecture, cell.training)
        | {"model_id": cell.label, "parameters": cell.parameters(study.tokenizer.vocabulary)}
        for cell in study.cells
    ]
    models += [
        model_row(
            architecture_columns(cell.architecture)
            | {"model_id": cell.label, "imported_as": cell.label, "imported_from": cell.format}
        )
        for cell in imported
    ]
    rows = {
        "studies": [{"study": study.name, "config": json.dumps(config)}],
        "study_models": [{"study": study.name, "model_id": label, "cell": label} for label in labels],
        "models": models,
    }
    with duckdb.connect() as connection:
        create_tables_and_views(connection)
        for name, planned in rows.items():
            connection.register("planned", pa.Table.from_pylist(planned, schema=table_schema(name)))
            connection.execute(f"INSERT INTO {name} BY NAME FROM planned")
        return lacking_for_claims(connection, read_claims(), study.name)


def training_warnings(study: Study) -> Iterator[str]:
    """What models may learn too little by for claims to look at them: few tokens, and text without repeats."""
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
    """What induction could add to bigrams in the longest context of the study; None while the text has no tokens."""
    store = open_store()
    corpus = store.find(artifact_specs.corpus_spec(study.corpus)) if study.trains else None
    tokens = corpus and store.find(artifact_specs.tokens_spec(study.tokenizer, corpus))
    if not tokens:
        return None
    longest = max(cell.architecture.n_ctx for cell in study.cells)
    rows = reversed(tokens.manifest.facts["repeats"])
    return next((row["beyond_bigrams_share"] for row in rows if row["context"] <= longest), None)


class _Shelf:
    """The store, and what earlier runs left in it: the measure of what is still to come."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._earlier: dict[str, list[Artifact]] = {}
        self._assumed: set[str] = set()  # digests of what is made again, and may come out otherwise

    def earlier(self, stage: str) -> list[Artifact]:
        """Everything that a stage has made, of whatever study."""
        if stage not in self._earlier:
            self._earlier[stage] = list(self.store.artifacts(stage))
        return self._earlier[stage]

    def look(self, spec: Spec, subject: str, seconds: float, size: int) -> tuple[Artifact | None, PlannedArtifact]:
        """What answers a spec, or of text what did before the code changed, if it is there; and what to say of it."""
        if artifact := self.store.find(spec):
            made = f"made {artifact.manifest.created[:16]}"
            if self._assumed & {used.digest for used in spec.inputs.values()}:
                made += "; stays if its text comes out the same"
            return artifact, PlannedArtifact(spec.stage, subject, True, made)
        before = self._before_the_code_changed(spec) if spec.stage in ("corpus", "tokens") else None
        if before:
            self._assumed.add(before.digest)
        return before, PlannedArtifact(spec.stage, subject, False, self._why_missing(spec), seconds, size)

    def training_speed(self, device: str) -> float:
        """FLOPs a second of the trainings so far on such a device."""
        done = [a.manifest.facts for a in self.earlier("training") if a.manifest.numerics["device"] == device]
        seconds = sum(facts["seconds"] for facts in done)
        return sum(facts["flops"] for facts in done) / seconds if seconds else FLOPS_PER_SECOND[device]

    def costs_seconds(self) -> float:
        """How long passes were timed so far, a study."""
        done = self.earlier("costs")
        return sum(artifact.manifest.seconds for artifact in done) / len(done) if done else COSTS_SECONDS

    def result_bytes(self, stage: str, checkpoint_bytes: int) -> int:
        """Size of what a stage of the analysis says of one model."""
        if done := self.earlier(stage):
            return sum(map(artifact_bytes, done)) // len(done)
        return BYTES_PER_RESULT + (PRUNED_MODELS * checkpoint_bytes if stage == "pruning" else 0)

    def _before_the_code_changed(self, spec: Spec) -> Artifact | None:
        """The latest artifact that differs from the one asked for in its code alone."""
        alike = [a for a in self.earlier(spec.stage) if a.manifest.config == spec.config and _has_inputs(a, spec)]
        return max(alike, key=lambda artifact: artifact.manifest.created, default=None)

    def _why_missing(self, spec: Spec) -> str:
        """What keeps the nearest earlier artifact from being the one asked for."""
        reasons = set()
        for artifact in self.earlier(spec.stage):
            earlier = artifact.manifest
            if earlier.config == spec.config:
                same_inputs = _has_inputs(artifact, spec)
                if earlier.code_version == spec.code_version:
                    reasons.add(
                        "device, precision, threads or compiling changed" if same_inputs else "its input changed"
                    )
                elif same_inputs:
                    reasons.add("the code changed")
        return ", or ".join(sorted(reasons)) or "not made yet"


def _has_inputs(artifact: Artifact, spec: Spec) -> bool:
    """Whether an artifact was made from what a spec asks for."""
    made_from = {role: used.digest for role, used in artifact.manifest.inputs.items()}
    return made_from == {role: used.digest for role, used in spec.inputs.items()}


def _plan_model(study: Study, cell: Cell, shelf: _Shelf, tokens: Artifact | None) -> Iterator[PlannedArtifact]:
    vocabulary = study.tokenizer.vocabulary
    device = resolve_numerics(cell.architecture, cell.training, vocabulary)[0].device
    seconds = training_flops(cell.architecture, vocabulary, cell.training.tokens) / shelf.training_speed(device)
    n_checkpoints = len(kept_steps(step_count(cell.architecture, cell.training), cell.training.checkpoints))
    checkpoint_bytes = BYTES_PER_PARAMETER * cell.parameters(vocabulary)
    size = (n_checkpoints + RESUME_CHECKPOINTS) * checkpoint_bytes
    if tokens is None:
        yield PlannedArtifact("training", cell.label, False, "its tokens will be made first", seconds, size)
        training = None
    else:
        training, planned = shelf.look(artifact_specs.training_spec(cell, tokens), cell.label, seconds, size)
        yield planned
    lasts = seconds_of_analyses(cell.architecture, vocabulary, n_checkpoints)
    yield from _plan_analyses(study, cell.label, shelf, training, tokens, lasts, checkpoint_bytes)


def _plan_imported(
    study: Study, cell: ImportedCell, shelf: _Shelf, tokens: Artifact | None
) -> Iterator[PlannedArtifact]:
    n_checkpoints = len(cell.checkpoints)
    checkpoint_bytes = BYTES_PER_PARAMETER * matrix_entries(cell.architecture, cell.d_vocab)
    seconds = seconds_of_import(cell.architecture, cell.d_vocab, n_checkpoints, checkpoint_bytes)
    size = n_checkpoints * checkpoint_bytes
    if tokens is None:
        yield PlannedArtifact("import", cell.label, False, "its tokens will be made first", seconds, size)
        model = None
    else:
        model, planned = shelf.look(artifact_specs.import_spec(cell, tokens), cell.label, seconds, size)
        yield planned
    lasts = seconds_of_analyses(cell.architecture, cell.d_vocab, n_checkpoints, reduced=True)
    yield from _plan_analyses(study, cell.label, shelf, model, tokens, lasts, checkpoint_bytes)


def _plan_analyses(
    study: Study,
    subject: str,
    shelf: _Shelf,
    model: Artifact | None,
    tokens: Artifact | None,
    seconds: Mapping[Stage, float],
    checkpoint_bytes: int,
) -> Iterator[PlannedArtifact]:
    """The analyses of one model, and how long each is taken to last."""
    for stage in study.analysis.stages:
        size = shelf.result_bytes(stage, checkpoint_bytes)
        if model is None or tokens is None:
            yield PlannedArtifact(stage, subject, False, "its model will be made first", seconds[stage], size)
        else:
            spec = artifact_specs.analysis_spec(stage, study.analysis, model, tokens)
            yield shelf.look(spec, subject, seconds[stage], size)[1]
