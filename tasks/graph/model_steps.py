"""The steps of one model: its training, and what measures it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pydantic import BaseModel

from headstream.models.flops import forward_flops
from headstream.tasks.graph import artifact_specs
from headstream.tasks.graph.base_roles import stages_waited_for, with_named_heads
from headstream.tasks.graph.step import Inputs, Step, StepName
from headstream.tasks.storage.artifact import Spec
from headstream.tasks.study.analyses import ANALYSES, DECLARED
from headstream.tasks.study.cells import Cell
from headstream.tasks.study.models_at_once import models_at_once
from headstream.tasks.study.schema import Study
from headstream.tasks.study.stage import CountedWork, Passes, Size, Stage, resolve
from headstream.tasks.study.stages import TRAINING
from headstream.tasks.training.numerics import resolve_numerics, training_flops
from headstream.tasks.training.training_steps import kept_steps, step_count

BYTES_PER_PARAMETER = 4
BYTES_PER_RESULT = 100_000
RESUME_CHECKPOINTS = 4  # what a running training keeps besides: weights, and the state of its optimisers


def training_step(cell: Cell, tokens: StepName, vocabulary: int, gpu_share: float, base: Cell | None = None) -> Step:
    """The training of a model. Its numerics are decided here, so that it is the same wherever it trains.

    If interventions name heads by their role in the model without them, its `base`, that is made and measured first.
    """
    numerics, why = resolve_numerics(cell.architecture, cell.training, vocabulary)
    n_checkpoints = len(kept_steps(step_count(cell.architecture, cell.training), cell.training.checkpoints))
    checkpoint_bytes = BYTES_PER_PARAMETER * cell.parameters(vocabulary)

    read: dict[str, StepName] = {}
    if base:
        read = {stage: StepName(stage, base.label) for stage in stages_waited_for(cell)}
        read["base"] = StepName(TRAINING.name, base.label)

    def named(inputs: Inputs) -> Cell:
        return with_named_heads(cell, base.label, inputs) if base else cell

    def arguments(spec: Spec, inputs: Inputs) -> dict[str, object]:
        return {
            "architecture": cell.architecture,
            "config": named(inputs).training,
            "numerics": numerics,
            "tokens_folder": inputs["tokens"].folder,
            "cell_id": artifact_specs.cell_id(cell, spec),
            "corpus_id": inputs["tokens"].manifest.facts["corpus_id"],
        }

    return Step(
        TRAINING,
        cell.label,
        inputs={"tokens": tokens, **read},
        spec_of=lambda inputs: artifact_specs.training_spec(named(inputs), inputs["tokens"], numerics),
        arguments_of=arguments,
        cell_id_of=lambda spec: artifact_specs.cell_id(cell, spec),
        size=Size(
            architecture=cell.architecture,
            pass_flops=forward_flops(cell.architecture, vocabulary, cell.architecture.n_ctx),
            n_ctx=cell.architecture.n_ctx,
            n_checkpoints=n_checkpoints,
            checkpoint_bytes=checkpoint_bytes,
            flops=training_flops(cell.architecture, vocabulary, cell.training.tokens),
            device=numerics.device,
            n_layers=cell.architecture.n_layers,
            n_heads=sum(cell.architecture.heads_per_layer),
        ),
        bytes=(n_checkpoints + RESUME_CHECKPOINTS) * checkpoint_bytes,
        gpus=gpu_share if numerics.device == "cuda" else 0.0,
        decides_late=bool(base),
        note=f"{cell.label} on {numerics.device} in {numerics.precision}, {why}",
    )


def analysis_steps(
    study: Study, model: Step, shared: Mapping[str, StepName], passes: Passes = "plain"
) -> Iterator[Step]:
    """The steps that measure the model that a step makes; `shared` are those that give the other roles, by role.

    `passes` says whether anything is done to the passes of the model at its last checkpoint.
    """
    roles = {**shared, **model.inputs, "model": model.name}
    for name in study.analysis.stages:
        if not ANALYSES[name].is_idle(study.analysis) and passes in ANALYSES[name].measures:
            for part in _parts(ANALYSES[name], study):
                yield _analysis_step(ANALYSES[name], part, study, model, roles)


def _parts(stage: Stage, study: Study) -> Mapping[str, BaseModel | None]:
    """The parts into which an input of a stage is split, each of which it measures apart; one without name if none.

    Each has the config of the input's stage for it alone.
    """
    split = [read for role in stage.reads if (read := DECLARED.get(role)) and read.split_by]
    return split[0].parts_of(study.analysis) if split else {"": None}


def _analysis_step(stage: Stage, part: str, study: Study, model: Step, roles: Mapping[str, StepName]) -> Step:
    config, threads = study.analysis, _threads(study)
    size = replace(model.size, bytes=0, flops=0.0)

    def arguments(spec: Spec, inputs: Inputs) -> dict[str, object]:
        return {
            "stage": stage.name,
            "config": config,
            "model_id": inputs["model"].manifest.facts["model_id"],
            "inputs": {role: artifact.folder for role, artifact in inputs.items()},
            "threads": threads,
        }

    return Step(
        stage,
        model.subject,
        part=part,
        inputs={role: roles.get(f"{role} {part}") or roles[role] for role in stage.reads},
        spec_of=lambda inputs: artifact_specs.analysis_spec(stage, config, inputs, part),
        arguments_of=arguments,
        work="headstream.tasks.measuring.measure:measure",
        size=size,
        budget=stage.part_of(config),
        counted=_counted(stage, part, study, size, threads),
        bytes=BYTES_PER_RESULT + stage.cost.checkpoints * model.size.checkpoint_bytes,
        gpus=study.resources.gpus if config.device == "cuda" else 0.0,
    )


def _counted(stage: Stage, part: str, study: Study, size: Size, threads: int) -> CountedWork | None:
    if not stage.counts_work:
        return None
    counted: CountedWork = resolve(stage.counts_work)(
        stage.part_of(study.analysis), size, threads, _parts(stage, study)[part]
    )
    return counted


def _threads(study: Study) -> int:
    """Threads of a measurement: where a study has fewer of them than there are cores, each has several."""
    if study.runner != "threads":
        return max(1, int(study.resources.cpus))
    busy = [stage for name in study.analysis.stages if not (stage := ANALYSES[name]).is_idle(study.analysis)]
    n_models = len(study.cells) + len(study.models)
    n_measurements = n_models * sum(len(_parts(stage, study)) for stage in busy)
    return max(1, models_at_once(study.resources) // n_measurements)
