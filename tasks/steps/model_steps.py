"""The steps of each model: its training or import, its analysis, and what came of them."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import islice
from pathlib import Path

import torch
from prefect.futures import PrefectFuture

from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.graph.artifact_specs import (
    analysis_spec,
    cell_id,
    costs_spec,
    import_spec,
    model_spec,
    training_spec,
)
from headstream.tasks.graph.making import find_or_make
from headstream.tasks.graph.scheduling import longest_first, longest_stages_first
from headstream.tasks.importing.imported_cell import ImportedCell, ModelCell
from headstream.tasks.importing.model_import import import_model
from headstream.tasks.machines.child_process import run_in_process, wait_for_fork_server
from headstream.tasks.machines.gpu_slots import gpu_slot
from headstream.tasks.machines.runners import Submit
from headstream.tasks.measuring import costs
from headstream.tasks.measuring.stages import ANALYSES, measure, part_of
from headstream.tasks.progress import COMPILING, Event, publish
from headstream.tasks.results.study_record import ModelOutcome
from headstream.tasks.steps.prefect_progress import shown_in_prefect
from headstream.tasks.steps.prefect_step import step
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.study.analysis_config import AnalysisConfig, Stage
from headstream.tasks.study.cells import Cell
from headstream.tasks.study.costs_config import CostsConfig
from headstream.tasks.study.schema import Study
from headstream.tasks.training import model_training
from headstream.tasks.training.compile_ahead import compile_kind, kind_of
from headstream.tasks.training.device import Numerics, resolve_numerics
from headstream.tasks.training.loop import Progress

log = logging.getLogger(__name__)


def require_device(study: Study) -> None:
    """Raises UserError when a model is to be trained or measured on a GPU here, and there is none.

    A cluster may have one.
    """
    on_gpu = "cuda" in (study.analysis.device, *(cell.training.device for cell in study.cells))
    if on_gpu and study.runner == "threads" and not torch.cuda.is_available():
        raise UserError(
            "device must be one this machine has, got device = 'cuda' without a CUDA GPU. Set device = 'auto' or 'cpu'."
        )


def compile_ahead(cells: Sequence[Cell], d_vocab: int, most: int, gpu_share: float, begun: Callable[[], bool]) -> None:
    """Compile what the models that train first will run, of `most` kinds, while other work goes on.

    For a GPU on one, of which it holds a model's share. Once trainings have begun they compile for themselves: one more
    process would only take a core from them.
    """
    kinds = dict.fromkeys(
        kind_of(cell.architecture, cell.training, resolve_numerics(cell.architecture, cell.training, d_vocab)[0])
        for cell in longest_first(cells, d_vocab)
    )
    compiled = [*islice((kind for kind in kinds if kind.numerics.compiled), most)]
    if not compiled:
        return
    with suppress(WorkError, OSError):  # a model that needs what could not be compiled says why
        wait_for_fork_server()  # trainings may have begun when it is there
        for kind in compiled:
            if begun():
                return
            held: AbstractContextManager[dict[str, str]] = nullcontext({})
            if kind.numerics.device == "cuda":
                held = gpu_slot(gpu_share)
            with held as environment:
                run_in_process(compile_kind, kind, d_vocab, environment=environment)


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
