"""The steps of a study: what each one's artifact is decided by, and how it is made when the store lacks it.

A `*_request` says what decides an artifact, so that `plan` can ask for it without making anything; the Prefect task of
the same step builds it. What a stage computes is in its own module, which knows neither the store nor Prefect.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from prefect import task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.tasks import exponential_backoff

from tasks import behaviour, corpus, places, reporting, tokens, training
from tasks.cell import Cell
from tasks.code_version import code_version
from tasks.device import Numerics, resolve_numerics, training_flops
from tasks.errors import WorkError
from tasks.process import ProcessDied, run_in_process
from tasks.progress import Event, publish
from tasks.store import Artifact, Request, Store
from tasks.study_record import RECORD_TABLES, ModelOutcome, record_request, write_record
from tasks.warehouse import build_warehouse

PREFECT_PROGRESS_SECONDS = 5.0

log = logging.getLogger(__name__)


def corpus_request(config: corpus.CorpusConfig) -> Request:
    """Decided by the config and by the bytes of every source file."""
    slice_ = {"corpus": config.model_dump(mode="json"), "files": corpus.corpus_fingerprint(config)}
    return Request("corpus", code_version("tasks.corpus"), slice_, {}, {})


def tokens_request(config: tokens.TokenizerConfig, text: Artifact) -> Request:
    """Decided by the config and the text."""
    return Request("tokens", code_version("tasks.tokens"), config.model_dump(mode="json"), {"corpus": text}, {})


def training_request(cell: Cell, encoded: Artifact) -> Request:
    """Decided by architecture, training, tokens, and by what the device changes in the numbers."""
    numerics, _ = _numerics(cell, encoded)
    slice_ = {
        "architecture": cell.architecture.model_dump(mode="json"),
        "training": cell.training.model_dump(mode="json", exclude={"device", "precision", "compile", "threads"}),
    }
    return Request("training", code_version("tasks.training"), slice_, {"tokens": encoded}, asdict(numerics))


def behaviour_request(config: behaviour.AnalysisConfig, model: Artifact, encoded: Artifact) -> Request:
    """Decided by the config, the checkpoints and the tokens."""
    inputs = {"training": model, "tokens": encoded}
    return Request("behaviour", code_version("tasks.behaviour"), config.model_dump(mode="json"), inputs, {})


def model_id(cell: Cell, request: Request) -> str:
    """What tables call a model: readable first, unique at the end."""
    return f"{cell.architecture.name}-s{cell.training.seed}-{request.key[:8]}"


def corpus_id(encoded: Artifact) -> str:
    """What tables call a tokenised corpus."""
    return encoded.manifest.key[:12]


def open_store() -> Store:
    """The store of this installation."""
    return Store(places.store_folder())


def _numerics(cell: Cell, encoded: Artifact) -> tuple[Numerics, str]:
    return resolve_numerics(cell.architecture, cell.training, encoded.manifest.facts["vocabulary"])


def _is_transient(task: Any, run: Any, state: State) -> bool:
    """A child that died may live next time, and so may a busy disk; a diverged loss or a wrong request won't."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, (ProcessDied, OSError))


step = task(
    cache_policy=NO_CACHE,  # the store decides what is done, not Prefect
    persist_result=False,
    retries=2,
    retry_delay_seconds=exponential_backoff(2),
    retry_condition_fn=_is_transient,
)


def _build(
    request: Request, subject: str, write: Callable[[Path], Mapping[str, Any] | None], **options: Any
) -> Artifact:
    """Find or build an artifact, and publish when that begins and ends."""
    built = False

    def begin(folder: Path) -> Mapping[str, Any] | None:
        nonlocal built
        built = True
        publish(Event(request.stage, subject, 0.0))
        return write(folder)

    artifact = open_store().build(request, begin, **options)
    publish(Event(request.stage, subject, 1.0, "done" if built else "already there"))
    return artifact


@step(task_run_name="read the corpus")
def read_corpus(config: corpus.CorpusConfig) -> Artifact:
    """Documents of the corpus, cleaned and split."""
    report = _fractions("corpus", "documents")
    return _build(corpus_request(config), "documents", lambda folder: corpus.write_corpus(config, folder, report))


@step(task_run_name="tokenise")
def tokenise(config: tokens.TokenizerConfig, text: Artifact) -> Artifact:
    """Tokenizer, and both splits as token shards."""
    request, report = tokens_request(config, text), _fractions("tokens", "tokens")

    def write(folder: Path) -> dict[str, Any]:
        facts = dict(tokens.write_tokens(config, text.folder, folder, report))
        return tokens.write_corpus_row(folder, request.key[:12], text.manifest.facts, facts)

    return _build(request, "tokens", write)


@step(task_run_name="train {cell.label}")
def train(cell: Cell, encoded: Artifact) -> Artifact:
    """Checkpoints of one model, trained in a process of its own."""
    request = training_request(cell, encoded)
    numerics, why = _numerics(cell, encoded)
    name = model_id(cell, request)
    show = _in_prefect(name)

    def report(progress: training.Progress) -> None:
        text = f"loss {progress.loss_nats:.3f} nats, {progress.tokens_per_second:,.0f} tokens/s"
        fraction = progress.step / progress.n_steps
        publish(Event("training", name, fraction, f"{text}, {progress.eta_seconds:.0f} s left"))
        show(fraction)

    def write(folder: Path) -> dict[str, Any]:
        log.info("%s (%s) on %s in %s, %s", name, cell.label, numerics.device, numerics.precision, why)
        return run_in_process(
            training.train_model,
            cell.architecture,
            cell.training,
            numerics,
            encoded.folder,
            folder,
            model_id=name,
            corpus_id=corpus_id(encoded),
            on_report=report,
        )

    return _build(request, name, write, timed=training.TIMED_FILES, resumable=True)


@step(task_run_name="measure behaviour of {model.manifest.facts[model_id]}")
def measure_behaviour(config: behaviour.AnalysisConfig, model: Artifact, encoded: Artifact) -> Artifact:
    """Losses and head scores of every checkpoint of one model."""
    name = model.manifest.facts["model_id"]

    def write(folder: Path) -> dict[str, Any]:
        return run_in_process(
            behaviour.measure_behaviour,
            config,
            model.folder,
            encoded.folder,
            folder,
            name,
            on_report=_fractions("behaviour", name),
        )

    return _build(behaviour_request(config, model, encoded), name, write)


def _fractions(stage: str, subject: str) -> Callable[[float], None]:
    return lambda fraction: publish(Event(stage, subject, fraction))


def _in_prefect(name: str) -> Callable[[float], None]:
    """A progress bar in Prefect's pages, moved at most every few seconds."""
    artifact, shown = None, -math.inf

    def show(fraction: float) -> None:
        nonlocal artifact, shown
        now = time.monotonic()
        if now - shown < PREFECT_PROGRESS_SECONDS and fraction < 1:
            return
        shown = now
        percent = round(100 * fraction, 1)
        if artifact is None:
            artifact = create_progress_artifact(percent, key=f"training-{name.lower()}", description=f"Training {name}")
        else:
            update_progress_artifact(cast(UUID, artifact), percent)

    return show


def training_work(cell: Cell) -> float:
    """How long a cell trains, in units that only compare cells."""
    return training_flops(cell.architecture, d_vocab=0, tokens=cell.training.tokens)


def outcome(cell: Cell, encoded: Artifact, **stages: PrefectFuture[Artifact]) -> ModelOutcome:
    """Wait for a cell's stages; what came of them, or the first error."""
    name = model_id(cell, training_request(cell, encoded))
    artifacts = {}
    for stage, future in stages.items():
        result = future.result(raise_on_failure=False)
        if isinstance(result, BaseException):
            log.error("%s (%s): %s", name, cell.label, result)
            return ModelOutcome(cell.label, name, artifacts, failure=f"{stage}: {result}")
        artifacts[stage] = result
    return ModelOutcome(cell.label, name, artifacts)


def require_success(outcomes: Sequence[ModelOutcome], report: Path) -> None:
    """Raises WorkError when a model failed."""
    if failed := [o for o in outcomes if o.failure]:
        first = f"{failed[0].model_id} ({failed[0].cell}): {failed[0].failure}"
        raise WorkError(
            f"{len(failed)} of {len(outcomes)} models failed, the first being {first} The others are in {report}."
        )


@step(task_run_name="record the study")
def record_study(
    name: str,
    question: str,
    config: Mapping[str, Any],
    outcomes: Sequence[ModelOutcome],
    shared: Sequence[Artifact],
    started_at: datetime,
) -> Artifact:
    """The study's own artifact: its config, its models and everything they are made of."""
    request = record_request(name, config, outcomes, shared)
    return _build(
        request, name, lambda folder: write_record(folder, name, question, config, outcomes, started_at), timed=RECORD_TABLES
    )


@step(task_run_name="index results")
def index_results() -> Path:
    """The warehouse, rebuilt when the store holds anything new."""
    publish(Event("warehouse", "index", 0.0))
    build_warehouse(open_store(), places.warehouse_file())
    publish(Event("warehouse", "index", 1.0, "done"))
    return places.warehouse_file()


@step(task_run_name="write the report")
def write_report(record: Artifact) -> Path:
    """The study's markdown report and its figures, published below reports/generated."""
    name = record.manifest.facts["study"]
    request = reporting.report_request(record)
    report = _build(
        request,
        name,
        lambda folder: run_in_process(
            reporting.render_report, places.warehouse_file(), name, folder, on_report=_fractions("report", name)
        ),
    )
    return reporting.publish_report(report, places.report_folder(name))
