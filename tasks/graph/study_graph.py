"""The steps of a study, each after those that it reads.

Everything else reads this. A plan asks the store for each step; a finished study is one of which no step is missing; a
run makes what is missing; progress, estimates and the order of work are those of the steps.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from pydantic import BaseModel

from headstream.tasks.errors import UserError
from headstream.tasks.graph import artifact_specs
from headstream.tasks.graph.model_steps import BYTES_PER_RESULT, analysis_steps, training_step
from headstream.tasks.graph.step import Step, StepName
from headstream.tasks.study.analyses import ANALYSES, DECLARED
from headstream.tasks.study.schema import Study
from headstream.tasks.study.stage import Size, Stage
from headstream.tasks.study.stages import CORPUS, COSTS, TOKENS
from headstream.tasks.text.corpus_files import corpus_fingerprint

Roles = Mapping[str, StepName]  # which step gives what analyses read


def study_graph(study: Study) -> list[Step]:
    """The steps of a study, in the order in which plans name them.

    Raises:
        UserError: the corpus has no files, or a model from elsewhere can't be read.
    """
    text = list(_text_steps(study))
    inputs = list(_shared_inputs(study))
    shared = {step.name.stage: step.name for step in (*text, *inputs)}
    models = [*_steps_of_trained_models(study, shared)]
    if study.models:
        from headstream.tasks.graph.imported_steps import steps_of_imported_models  # imports torch

        models += steps_of_imported_models(study, shared, text[0].size)
    _require_own_names(models)
    return [*text, *inputs, *models]


def _require_own_names(steps: Iterable[Step]) -> None:
    """Raises UserError when a model from elsewhere has the name of one that is trained: neither could be told."""
    makers = Counter(step.subject for step in steps if step.makes_model)
    twice = next((name for name, n in makers.items() if n > 1), None)
    if twice:
        raise UserError(f"Two models of the study are called {twice!r}. Rename the one of [[models]].")


def _text_steps(study: Study) -> Iterator[Step]:
    """The corpus first; then its tokens, where models are trained on them, and the costs of passes, which need none."""
    source_bytes = corpus_fingerprint(study.corpus)["bytes"]
    size = Size(bytes=source_bytes)
    corpus = Step(
        CORPUS,
        "documents",
        spec_of=lambda inputs: artifact_specs.corpus_spec(study.corpus),
        arguments_of=lambda spec, inputs: {"config": study.corpus, "files": spec.config["files"]},
        size=size,
        bytes=source_bytes // 3,
        is_shared=True,
    )
    yield corpus
    if study.trains:
        yield Step(
            TOKENS,
            "tokens",
            inputs={"corpus": corpus.name},
            spec_of=lambda inputs: artifact_specs.tokens_spec(study.tokenizer, inputs["corpus"]),
            arguments_of=lambda spec, inputs: {"config": study.tokenizer, "corpus_folder": inputs["corpus"].folder},
            size=size,
            bytes=source_bytes,
            is_shared=True,
        )
    if study.measures_costs:
        yield Step(
            COSTS,
            study.name,
            spec_of=lambda inputs: artifact_specs.costs_spec(study.costs, study.name),
            arguments_of=lambda spec, inputs: {"config": study.costs, "study": study.name},
            bytes=BYTES_PER_RESULT,
            is_shared=True,
        )


def _shared_inputs(study: Study) -> Iterator[Step]:
    """The steps that make what analyses read besides models and text, each once for all models."""
    busy = (ANALYSES[name] for name in study.analysis.stages if not ANALYSES[name].is_idle(study.analysis))
    read = {role for stage in busy for role in stage.reads}
    for stage in DECLARED.values():
        if stage.name in read:
            for part, config in stage.parts_of(study.analysis).items():
                yield _shared_input(stage, part, config)


def _shared_input(stage: Stage, part: str, config: BaseModel) -> Step:
    return Step(
        stage,
        part or stage.name,
        part=part,
        spec_of=lambda inputs: artifact_specs.shared_input_spec(stage, config, part),
        arguments_of=lambda spec, inputs: {"config": config},
        bytes=BYTES_PER_RESULT,
        is_shared=True,
    )


def _steps_of_trained_models(study: Study, shared: Roles) -> Iterator[Step]:
    for cell in study.cells:
        base = study.base_of(cell) if cell.roles else None
        training = training_step(cell, shared["tokens"], study.tokenizer.vocabulary, study.resources.gpus, base)
        yield training
        yield from analysis_steps(study, training, shared, cell.passes)
