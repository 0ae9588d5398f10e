"""The steps of a study: Prefect tasks that make the artifacts which the store lacks.

What decides an artifact is in requests.py; what a stage computes, in its own module, which knows neither the store nor
Prefect.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import httpx
from prefect import Task, task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.exceptions import PrefectException
from prefect.futures import PrefectFuture
from prefect.tasks import exponential_backoff

from tasks import places
from tasks.artifact_specs import (
    ANALYSES,
    analysis_spec,
    corpus_spec,
    costs_spec,
    model_id,
    numerics_of,
    part_of,
    tokens_spec,
    training_spec,
)
from tasks.errors import UserError, WorkError
from tasks.machines.child_process import ProcessDied, run_in_process, start_fork_server
from tasks.machines.gpu_slots import gpu_slot
from tasks.machines.runners import Submit
from tasks.measuring import costs
from tasks.measuring.trained_model import TrainedModel
from tasks.progress import Event, publish
from tasks.report import rendering
from tasks.results.study_record import RECORD_TABLES, ModelOutcome, latest_record, record_spec, write_record
from tasks.results.tables import write_table
from tasks.results.warehouse import build_warehouse
from tasks.storage.artifact import Artifact, Spec
from tasks.storage.store import Store
from tasks.study.analysis_config import AnalysisConfig, Stage
from tasks.study.cells import Cell
from tasks.study.corpus_config import CorpusConfig
from tasks.study.costs_config import CostsConfig
from tasks.study.tokenizer_config import TokenizerConfig
from tasks.text import corpus, tokens
from tasks.training import model_training
from tasks.training.device import Numerics, training_flops
from tasks.training.loop import Progress

PREFECT_PROGRESS_SECONDS = 5.0


class TextChanged(WorkError):
    """Files of the corpus changed while they were read."""


P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)


def open_store() -> Store:
    """The store of this installation."""
    return Store(places.store_folder())


def _is_transient(task: Any, run: Any, state: State) -> bool:
    """A child that died may live next time, a busy disk or a text come to rest; a loss that diverged stays so."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, (ProcessDied, TextChanged, OSError))


def step(run_name: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A Prefect task that the store, not Prefect, remembers."""
    return task(
        task_run_name=run_name,
        cache_policy=NO_CACHE,
        persist_result=False,
        retries=2,
        retry_delay_seconds=exponential_backoff(2),
        retry_condition_fn=_is_transient,
    )


def _build(spec: Spec, subject: str, write: Callable[[Path], Mapping[str, Any] | None], **options: Any) -> Artifact:
    """Find or build an artifact, and publish when that begins and ends."""
    built = False

    def begin(folder: Path) -> Mapping[str, Any] | None:
        nonlocal built
        built = True
        publish(Event(spec.stage, subject, 0.0))
        return write(folder)

    artifact = open_store().build(spec, begin, **options)
    publish(Event(spec.stage, subject, 1.0, "done" if built else "already there"))
    return artifact


@contextmanager
def store_in_use() -> Iterator[None]:
    """`gc` removes nothing while the block, or the function that this decorates, runs."""
    with open_store().in_use():
        yield


def prepare() -> None:
    """Start what later steps would wait for, and clear what killed runs left."""
    start_fork_server()
    open_store().sweep()


@step("read the corpus")
def read_corpus(config: CorpusConfig) -> Artifact:
    """Documents of the corpus, cleaned and split."""
    spec = corpus_spec(config)

    def write(folder: Path) -> dict[str, Any]:
        facts = corpus.write_corpus(config, folder, _fractions("corpus", "documents"))
        if corpus_spec(config).key != spec.key:
            raise TextChanged(
                "the files of a corpus must not change while they are read, but some did."
                " Run again when they are at rest, or read a copy."
            )
        return facts

    return _build(spec, "documents", write)


@step("tokenise")
def tokenise(config: TokenizerConfig, text: Artifact) -> Artifact:
    """Tokenizer, and both splits as token shards."""
    spec = tokens_spec(config, text)
    read = text.manifest.facts

    def write(folder: Path) -> dict[str, Any]:
        facts = tokens.write_tokens(config, text.folder, folder, _fractions("tokens", "tokens"))
        row = {name: read[name] for name in ("source", "documents", "bytes", "train_documents", "validation_documents")}
        row |= facts | {"corpus_id": spec.key[:12], "text_sha256": read["sha256"]}
        write_table(folder, "corpora", [row])
        return row

    return _build(spec, "tokens", write)


def make_text(config: CorpusConfig, tokenizer: TokenizerConfig) -> None:
    """Corpus and tokens, outside of any flow."""
    start_fork_server()
    tokenise.fn(tokenizer, read_corpus.fn(config))


@step("measure costs")
def measure_costs(config: CostsConfig, study: str) -> Artifact:
    """How long passes take and what they compute, by size; to be asked for while nothing else runs."""

    def write(folder: Path) -> dict[str, Any]:
        return run_in_process(costs.measure_costs, config, study, folder, on_progress=_fractions("costs", study))

    return _build(costs_spec(config, study), study, write, timed=costs.TIMED_FILES)


def start_training(submit: Submit, cell: Cell, encoded: Artifact, gpu_share: float) -> PrefectFuture[Artifact]:
    """Submit the training of a model; its numerics are decided here, so that it is the same wherever it trains."""
    numerics, why = numerics_of(cell, encoded)
    log.info("%s on %s in %s, %s", cell.label, numerics.device, numerics.precision, why)
    gpus = gpu_share if numerics.device == "cuda" else 0.0
    return submit(train, gpus, cell=cell, encoded=encoded, numerics=numerics, gpu_share=gpus)


@step("train {cell.label}")
def train(cell: Cell, encoded: Artifact, numerics: Numerics, gpu_share: float = 0.0) -> Artifact:
    """Checkpoints of one model, trained in a process of its own, which sees one GPU at most."""
    spec = training_spec(cell, encoded, numerics)
    name = model_id(cell, spec)
    show = _in_prefect(name)

    def on_progress(progress: Progress) -> None:
        text = f"loss {progress.loss_nats:.3f} nats, {progress.tokens_per_second:,.0f} tokens/s"
        fraction = progress.step / progress.n_steps
        publish(Event("training", name, fraction, f"{text}, {progress.eta_seconds:.0f} s left"))
        show(fraction)

    def write(folder: Path) -> dict[str, Any]:
        with gpu_slot(gpu_share) if gpu_share else nullcontext() as environment:
            return run_in_process(
                model_training.train_model,
                cell.architecture,
                cell.training,
                numerics,
                encoded.folder,
                folder,
                model_id=name,
                corpus_id=encoded.manifest.facts["corpus_id"],
                on_progress=on_progress,
                environment=environment,
            )

    return _build(spec, name, write, timed=model_training.TIMED_FILES, resumable=True)


@step("measure {stage} of {model.manifest.facts[model_id]}")
def analyse(stage: Stage, config: AnalysisConfig, model: Artifact, encoded: Artifact) -> Artifact:
    """What one stage of the analysis measures on one model, in a process of its own."""
    name = model.manifest.facts["model_id"]

    def write(folder: Path) -> dict[str, Any]:
        facts = run_in_process(
            ANALYSES[stage].measure,
            part_of(config, stage),
            TrainedModel(name, model.folder, encoded.folder),
            folder,
            on_progress=_fractions(stage, name),
        )
        return {"model_id": name, **facts}

    return _build(analysis_spec(stage, config, model, encoded), name, write, timed=ANALYSES[stage].timed)


def _fractions(stage: str, subject: str) -> Callable[[float], None]:
    return lambda fraction: publish(Event(stage, subject, fraction))


def _in_prefect(name: str) -> Callable[[float], None]:
    """A progress bar in Prefect's pages, moved at most every few seconds."""
    artifact: Any = None
    shown = -math.inf

    def show(fraction: float) -> None:
        nonlocal artifact, shown
        now = time.monotonic()
        if now - shown < PREFECT_PROGRESS_SECONDS and fraction < 1:
            return
        shown = now
        percent = round(100 * fraction, 1)
        try:
            if artifact is None:
                key, description = f"training-{name.lower()}", f"Training {name}"
                artifact = create_progress_artifact(percent, key=key, description=description)
            else:
                update_progress_artifact(artifact, percent)
        except (httpx.HTTPError, PrefectException) as error:  # the training goes on without
            log.warning("the progress of %s can't be shown: %s", name, type(error).__name__)

    return show


def training_work(cell: Cell) -> float:
    """How long a cell trains, in units that only compare cells."""
    return training_flops(cell.architecture, d_vocab=0, tokens=cell.training.tokens)


def outcome(
    cell: Cell, encoded: Artifact, model: PrefectFuture[Artifact], analyses: Sequence[PrefectFuture[Artifact]]
) -> ModelOutcome:
    """Wait for a cell's stages; what came of them, or the first error."""
    name = model_id(cell, training_spec(cell, encoded))
    artifacts: list[Artifact] = []
    for future in (model, *analyses):
        future.wait()  # what a Ray task raises then becomes a state, too
        result = future.result(raise_on_failure=False)
        if isinstance(result, BaseException):
            log.error("%s (%s): %s", name, cell.label, result)
            return ModelOutcome(cell.label, name, artifacts, failure=str(result))
        artifacts.append(result)
    return ModelOutcome(cell.label, name, artifacts)


def require_success(outcomes: Sequence[ModelOutcome], report: Path) -> None:
    """Raises WorkError when a model failed."""
    if failed := [o for o in outcomes if o.failure]:
        first = f"{failed[0].model_id} ({failed[0].cell}): {failed[0].failure}"
        raise WorkError(
            f"{len(failed)} of {len(outcomes)} models failed, the first being {first} The others are in {report}."
        )


@step("record the study")
def record_study(
    name: str,
    question: str,
    config: Mapping[str, Any],
    outcomes: Sequence[ModelOutcome],
    shared: Sequence[Artifact],
    started: float,
) -> Artifact:
    """The study's own artifact: its config, its models and everything they are made of.

    `started` is when its run began, by time.monotonic().
    """
    latest = latest_record(open_store(), name)
    spec = record_spec(config, outcomes, shared, latest)
    return _build(
        spec,
        name,
        lambda folder: write_record(folder, name, question, config, outcomes, started),
        timed=RECORD_TABLES,
    )


@step("index results")
def index_results() -> Path:
    """The warehouse, rebuilt when the store holds anything new."""
    publish(Event("warehouse", "index", 0.0))
    build_warehouse(open_store(), places.warehouse_file())
    publish(Event("warehouse", "index", 1.0, "done"))
    return places.warehouse_file()


@step("write the report")
def write_report(record: Artifact) -> Path:
    """The study's markdown report and its figures, published below reports/generated."""
    return _publish_report(record)


def report_again(study: str) -> Path:
    """The report of what the store holds now, published again.

    Raises:
        UserError: the study has not run yet.
    """
    record = latest_record(open_store(), study)
    if record is None:
        raise UserError(f"a report needs a study that has run, got {study!r}. Run `headstream run {study}` first.")
    build_warehouse(open_store(), places.warehouse_file())
    return _publish_report(record)


def answer_of(study: str) -> list[str]:
    """What the study's report says first."""
    record = latest_record(open_store(), study)
    report = open_store().find(_report_spec(record)) if record else None
    return report.manifest.facts["answer"] if report else []


def _report_spec(record: Artifact) -> Spec:
    return rendering.report_spec(record, rendering.previous_summary(open_store(), record))


def _publish_report(record: Artifact) -> Path:
    name = record.manifest.facts["study"]

    def write(folder: Path) -> dict[str, Any]:
        arguments = places.warehouse_file(), name, folder
        shown = _fractions("report", name)
        return run_in_process(rendering.render_report, *arguments, previous=previous, on_progress=shown)

    previous = rendering.previous_summary(open_store(), record)
    report = _build(rendering.report_spec(record, previous), name, write, timed=rendering.TIMED_FILES)
    return rendering.publish_report(report, places.report_folder(name))
