"""The steps of a study: Prefect tasks that make the artifacts which the store lacks.

What decides an artifact is in artifact_specs.py; what a stage computes, in its own module, which knows neither the
store nor Prefect.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch
from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture

from tasks import places
from tasks.artifact_specs import (
    analysis_spec,
    cell_id,
    corpus_spec,
    costs_spec,
    given_tokens_spec,
    import_spec,
    model_spec,
    record_spec,
    report_spec,
    tokens_spec,
    training_spec,
)
from tasks.errors import UserError, WorkError
from tasks.importing.imported_cell import ImportedCell, ModelCell
from tasks.importing.model_import import import_model
from tasks.machines.child_process import (
    ProcessDied,
    run_in_process,
    run_side_by_side,
    start_fork_server,
    wait_for_fork_server,
)
from tasks.machines.gpu_slots import gpu_slot
from tasks.machines.runners import Submit
from tasks.making import find_or_make, open_store
from tasks.measuring import costs
from tasks.measuring.stages import ANALYSES, measure, part_of
from tasks.prefect_progress import shown_in_prefect
from tasks.progress import COMPILING, Event, publish
from tasks.report import rendering
from tasks.report.answer import answer_lines
from tasks.report.explorer.explorer_contents import write_explorer
from tasks.report.explorer.model_files import EXPLORER, files_of_models
from tasks.report.explorer.passages import named_text
from tasks.report.publishing import previous_summary, publish_report
from tasks.report.rendering import render_report
from tasks.results.study_record import RECORD_TABLES, ModelOutcome, write_record
from tasks.results.study_results import open_results
from tasks.results.warehouse import build_warehouse
from tasks.scheduling import longest_first, longest_stages_first
from tasks.storage.artifact import Artifact
from tasks.storage.latest_records import latest_record
from tasks.study.analysis_config import AnalysisConfig, Stage
from tasks.study.cells import Cell
from tasks.study.corpus_config import CorpusConfig
from tasks.study.costs_config import CostsConfig
from tasks.study.schema import Study
from tasks.study.tokenizer_config import TokenizerConfig
from tasks.text import token_writing
from tasks.text.corpus_writing import write_corpus
from tasks.text.token_reading import Tokens, require_context
from tasks.text.token_writing import write_tokens
from tasks.training import model_training
from tasks.training.compile_ahead import compile_kind, kind_of
from tasks.training.device import Numerics, resolve_numerics
from tasks.training.loop import Progress


class TextChanged(WorkError):
    """Files of the corpus changed while they were read."""


P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)


# A child that died may live next time, a busy disk or a text come to rest; a loss that diverged stays so.
TRANSIENT = (ProcessDied, TextChanged, OSError)
RETRY_SECONDS = (2, 4)


def _is_transient(task: Any, run: Any, state: State) -> bool:
    return isinstance(state.result(raise_on_failure=False), TRANSIENT)


def step(run_name: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A Prefect task that the store, not Prefect, remembers."""
    return task(
        task_run_name=run_name,
        cache_policy=NO_CACHE,
        persist_result=False,
        retries=len(RETRY_SECONDS),
        retry_delay_seconds=[*RETRY_SECONDS],
        retry_condition_fn=_is_transient,
    )


def alone(work: Task[P, R], *arguments: P.args, **options: P.kwargs) -> R:
    """What a step does, outside of any flow, and tried again as in one."""
    for delay in RETRY_SECONDS:
        try:
            return work.fn(*arguments, **options)
        except TRANSIENT:
            time.sleep(delay)
    return work.fn(*arguments, **options)


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

    def read(**options: Any) -> dict[str, Any]:
        facts = write_corpus(config, **options)
        if corpus_spec(config).key != spec.key:
            raise TextChanged(
                "the files of a corpus must not change while they are read, but some did."
                " Run again when they are at rest, or read a copy."
            )
        return facts

    return find_or_make(spec, "documents", read, apart=False)


@step("tokenise")
def tokenise(config: TokenizerConfig, corpus: Artifact) -> Artifact:
    """Tokenizer, and both splits as token shards."""
    spec = tokens_spec(config, corpus)
    incidental = token_writing.INCIDENTAL_FILES
    return find_or_make(spec, "tokens", write_tokens, config, corpus.folder, incidental=incidental, apart=False)


@step("tokenise for {cell.label}")
def tokenise_for(cell: ImportedCell, corpus: Artifact) -> Artifact:
    """Both splits as token shards, by the tokenizer of a model from elsewhere."""
    work = (token_writing.write_given_tokens, cell.tokenizer.json, cell.bos, cell.d_vocab, corpus.folder)
    incidental = token_writing.INCIDENTAL_FILES
    return find_or_make(given_tokens_spec(cell, corpus), cell.label, *work, incidental=incidental, apart=False)


def make_tokens(study: Study, imported: Sequence[ImportedCell], corpus: Artifact) -> None:
    """Tokens of the corpus, outside of any flow.

    Raises:
        UserError: a model of the study can't be trained or measured on them.
    """
    tokens: dict[ModelCell, Artifact] = {cell: alone(tokenise_for, cell, corpus) for cell in imported}
    if study.trains:
        own = alone(tokenise, study.tokenizer, corpus)
        tokens |= dict.fromkeys(study.cells, own)
    require_text(tokens)


def compile_ahead(cells: Sequence[Cell], d_vocab: int, most: int, gpu_share: float, begun: Callable[[], bool]) -> None:
    """Compile what the models that train first will run, of `most` kinds, while other work goes on.

    For a GPU on one, of which it holds a model's share. Once trainings have begun they compile for
    themselves: one more process would only take a core from them.
    """
    kinds = dict.fromkeys(
        kind_of(cell.architecture, cell.training, resolve_numerics(cell.architecture, cell.training, d_vocab)[0])
        for cell in longest_first(cells, d_vocab)
    )
    with suppress(WorkError, OSError):  # a model that needs what could not be compiled says why
        wait_for_fork_server()  # which may take until then
        for kind in islice((kind for kind in kinds if kind.numerics.compiled), most):
            if begun():
                return
            held: AbstractContextManager[dict[str, str]] = nullcontext({})
            if kind.numerics.device == "cuda":
                held = gpu_slot(gpu_share)
            with held as environment:
                run_in_process(compile_kind, kind, d_vocab, environment=environment)


def require_text(tokens: Mapping[ModelCell, Artifact]) -> None:
    """Raises UserError when a split of its text doesn't fill a model's context."""
    longest: dict[Path, int] = {}
    for cell, text in tokens.items():
        longest[text.folder] = max(cell.architecture.n_ctx, longest.get(text.folder, 0))
    for folder, n_ctx in longest.items():
        require_context(Tokens.open(folder), n_ctx)


def require_device(study: Study) -> None:
    """Raises UserError when a model is to be trained or measured on a GPU here, and there is none.

    A cluster may have one.
    """
    on_gpu = "cuda" in (study.analysis.device, *(cell.training.device for cell in study.cells))
    if on_gpu and study.runner == "threads" and not torch.cuda.is_available():
        raise UserError(
            "device must be one this machine has, got device = 'cuda' without a CUDA GPU. Set device = 'auto' or 'cpu'."
        )


@step("measure costs")
def measure_costs(config: CostsConfig, study: str) -> Artifact:
    """How long passes take and what they compute, by size; to be asked for while nothing else runs."""
    spec = costs_spec(config, study)
    return find_or_make(spec, study, costs.time_passes, config, study, incidental=costs.INCIDENTAL_FILES)


def start_training(submit: Submit, cell: Cell, tokens: Artifact, gpu_share: float) -> PrefectFuture[Artifact]:
    """Submit the training of a model; its numerics are decided here, so that it is the same wherever it trains."""
    numerics, why = resolve_numerics(cell.architecture, cell.training, tokens.manifest.facts["vocabulary"])
    log.info("%s on %s in %s, %s", cell.label, numerics.device, numerics.precision, why)
    gpus = gpu_share if numerics.device == "cuda" else 0.0
    return submit(train, gpus, cell=cell, tokens=tokens, numerics=numerics, gpu_share=gpus)


@step("train {cell.label}")
def train(cell: Cell, tokens: Artifact, numerics: Numerics, gpu_share: float = 0.0) -> Artifact:
    """Checkpoints of one model, trained in a process of its own, which sees one GPU at most."""
    spec = training_spec(cell, tokens, numerics)
    name = cell_id(cell, spec)
    move_bar = shown_in_prefect(name, cell.label)

    def show(progress: Progress) -> None:
        fraction, kept = progress.step / progress.n_steps, progress.saved_step / progress.n_steps
        publish(Event("training", cell.label, fraction, _training_text(progress), kept, spec.key))
        move_bar(fraction)

    return find_or_make(
        spec,
        cell.label,
        model_training.train_model,
        cell.architecture,
        cell.training,
        numerics,
        tokens.folder,
        cell_id=name,
        corpus_id=tokens.manifest.facts["corpus_id"],
        incidental=model_training.INCIDENTAL_FILES,
        resumable=True,
        on_progress=show,
        holding=gpu_slot(gpu_share) if gpu_share else None,
    )


def _training_text(progress: Progress) -> str:
    if progress.compiling:
        return COMPILING
    loss = "" if progress.loss_nats is None else f"loss {progress.loss_nats:.3f} nats"
    speed = "" if progress.tokens_per_second is None else f"{progress.tokens_per_second:,.0f} tokens/s"
    return ", ".join(filter(None, (loss, speed)))


@step("import {cell.label}")
def import_from_elsewhere(cell: ImportedCell, tokens: Artifact, corpus: Artifact) -> Artifact:
    """Checkpoints of one model from elsewhere and its certificate, made in a process of its own."""
    spec = import_spec(cell, tokens)
    return find_or_make(
        spec,
        cell.label,
        import_model,
        cell,
        tokens.folder,
        corpus.folder,
        model_id=cell_id(cell, spec),
        corpus_id=tokens.manifest.facts["corpus_id"],
    )


def start_analyses(
    submit: Submit,
    config: AnalysisConfig,
    cell: ModelCell,
    model: PrefectFuture[Artifact],
    tokens: Artifact,
    gpu_share: float,
) -> list[PrefectFuture[Artifact]]:
    """Submit the stages of the analysis of a model, which follow its training."""
    gpus = gpu_share if config.device == "cuda" else 0.0
    shared = {"config": config, "cell": cell, "model": model, "tokens": tokens, "gpu_share": gpus}
    return [submit(analyse, gpus, stage=stage, **shared) for stage in longest_stages_first(config.stages)]


@step("measure {stage} of {cell.label}")
def analyse(
    stage: Stage, config: AnalysisConfig, cell: ModelCell, model: Artifact, tokens: Artifact, gpu_share: float = 0.0
) -> Artifact:
    """What one stage of the analysis measures on one model, in a process of its own, which sees one GPU at most."""
    return find_or_make(
        analysis_spec(stage, config, model, tokens),
        cell.label,
        measure,
        stage,
        part_of(config, stage),
        model.manifest.facts["model_id"],
        model.folder,
        tokens.folder,
        device=config.device,
        incidental=ANALYSES[stage].incidental,
        holding=gpu_slot(gpu_share) if gpu_share else None,
    )


def outcome(
    cell: ModelCell, tokens: Artifact, model: PrefectFuture[Artifact], analyses: Sequence[PrefectFuture[Artifact]]
) -> ModelOutcome:
    """Wait for a cell's stages: all that were made, and the first error if there is one."""
    for future in (model, *analyses):
        future.wait()  # what a Ray task raises then becomes a state, too
    artifacts = [tokens] if isinstance(cell, ImportedCell) else []
    made = model.result(raise_on_failure=False)
    if isinstance(made, BaseException):  # and so there is nothing to measure
        log.error("%s: %s", cell.label, made)
        return ModelOutcome(cell.label, cell_id(cell, model_spec(cell, tokens)), artifacts, failure=str(made))
    artifacts.append(made)
    failures = []
    for future in analyses:
        measured = future.result(raise_on_failure=False)
        if isinstance(measured, BaseException):
            log.error("%s: %s", cell.label, measured)
            failures.append(str(measured))
        else:
            artifacts.append(measured)
    return ModelOutcome(cell.label, made.manifest.facts["model_id"], artifacts, failure=next(iter(failures), None))


def require_success(outcomes: Sequence[ModelOutcome], report: Path) -> None:
    """Raises WorkError when a model failed."""
    if failed := [o for o in outcomes if o.failure]:
        first = f"{failed[0].cell}: {failed[0].failure}"
        raise WorkError(
            f"{len(failed)} of {len(outcomes)} models failed, the first being {first} The others are in {report}."
        )


@step("record the study")
def record_study(
    study: Study, outcomes: Sequence[ModelOutcome], shared: Sequence[Artifact], started: float
) -> Artifact:
    """The study's own artifact: its config, its models and everything they are made of.

    `started` is when its run began, by time.monotonic().
    """
    spec = record_spec(study.recorded, outcomes, shared, latest_record(open_store(), study.name))
    write = partial(
        write_record,
        name=study.name,
        question=study.question,
        config=study.recorded,
        written=study.written,
        outcomes=outcomes,
        started=started,
    )
    return find_or_make(spec, study.name, write, incidental=RECORD_TABLES, apart=False)


@step("index results")
def index_results() -> Path:
    """The warehouse, rebuilt when the store holds anything new."""
    publish(Event("warehouse", "index", 0.0))
    build_warehouse(open_store(), places.warehouse_file())
    publish(Event("warehouse", "index", 1.0))
    return places.warehouse_file()


@step("write the report")
def write_report(record: Artifact) -> Path:
    """The study's report, its figures and its explorer, published below reports/generated."""
    name, previous = record.manifest.facts["study"], previous_summary(open_store(), record)
    spec, warehouse = report_spec(record, previous), places.warehouse_file()
    models = files_of_models(open_store(), record)
    render = partial(render_report, previous=previous, models=models, make_parts=run_side_by_side)
    report = find_or_make(spec, name, render, warehouse, name, incidental=rendering.INCIDENTAL_FILES, apart=False)
    return publish_report(report, places.report_folder(name))


def report_again(study: str) -> Path:
    """The report of what the store holds now, published again.

    Raises:
        UserError: the study has not run yet.
    """
    record = latest_record(open_store(), study)
    if record is None:
        raise UserError(f"a report needs a study that has run, got {study!r}. Run `headstream run {study}` first.")
    build_warehouse(open_store(), places.warehouse_file())
    return write_report.fn(record)


def explorer_again(study: str, text: Path | None = None) -> Path:
    """The explorer of what the store holds now; with a text, a copy of its own that shows that, too.

    Raises:
        UserError: the study has not run yet, or the text can't be read.
    """
    shown = named_text(text) if text else None  # before anything is made
    explorer, store = report_again(study).parent / EXPLORER, open_store()
    record = latest_record(store, study)
    if shown is None or record is None:
        return explorer
    copy = explorer.with_stem(f"{explorer.stem}-{re.sub('[^A-Za-z0-9_-]+', '-', Path(shown.name).stem)}")
    with open_results(places.warehouse_file(), study) as results:
        write_explorer(results, files_of_models(store, record), copy, answer_lines(results), shown)
    return copy


def answer_of(study: str) -> list[str]:
    """What the study's report says first."""
    store = open_store()
    record = latest_record(store, study)
    report = store.find(report_spec(record, previous_summary(store, record))) if record else None
    return report.manifest.facts["answer"] if report else []
