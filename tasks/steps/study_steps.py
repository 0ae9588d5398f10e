"""The steps of a study, run: its text one after the other, then its models side by side."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import Task
from prefect.futures import PrefectFuture

from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.graph.outcomes import Made
from headstream.tasks.graph.scheduling import in_working_order
from headstream.tasks.graph.step import LeftOut, Step, StepName
from headstream.tasks.machines.runners import Submit
from headstream.tasks.results.study_record import ModelOutcome
from headstream.tasks.steps.prefect_step import make
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.study.schema import Study
from headstream.tasks.text.token_reading import Tokens, require_context
from headstream.tasks.training.numerics import has_gpu


def require_device(study: Study) -> None:
    """Raises UserError when a model is to be trained or measured on a GPU here, and there is none.

    A cluster may have one.
    """
    on_gpu = "cuda" in (study.analysis.device, *(cell.training.device for cell in study.cells))
    if on_gpu and study.runner == "threads" and not has_gpu():
        raise UserError(
            "device must be one this machine has, got device = 'cuda' without a CUDA GPU. Set device = 'auto' or 'cpu'."
        )


def make_text(steps: Sequence[Step]) -> dict[StepName, Artifact]:
    """Make, one after the other, whatever needs no model: the corpus, tokens, costs, and other inputs of analyses."""
    made: dict[StepName, Artifact] = {}
    for step in steps:
        if not (step.makes_model or step.measures_model):
            artifact = _named(step)(step, step.given(made))
            assert isinstance(artifact, Artifact)  # text waits for no model, and so is never left out
            made[step.name] = artifact
    return made


def require_text(steps: Sequence[Step], text: Mapping[StepName, Artifact]) -> None:
    """Raises UserError when a split of its text doesn't fill a model's context."""
    longest: dict[Path, int] = {}
    for step in steps:
        if step.makes_model:
            folder = text[step.inputs["tokens"]].folder
            longest[folder] = max(step.size.n_ctx, longest.get(folder, 0))
    for folder, n_ctx in longest.items():
        require_context(Tokens.open(folder), n_ctx)


def make_models(steps: Sequence[Step], text: Mapping[StepName, Artifact], submit: Submit, jobs: int) -> Made:
    """All that the study consists of: of each step its artifact, or the error for which there is none."""
    order = in_working_order(steps, jobs)
    futures: dict[StepName, PrefectFuture[Artifact]] = {}
    there: Mapping[StepName, Any] = ChainMap[StepName, Any](futures, dict(text))
    for step in order:
        given = step.given(there)
        futures[step.name] = submit(_named(step), step.gpus, step=step, inputs=given)
    for future in futures.values():
        future.wait()  # what a Ray task raises then becomes a state, too
    made: dict[StepName, Artifact | BaseException] = dict(text)
    for step in order:
        failed = next((made[name] for name in step.inputs.values() if isinstance(made[name], BaseException)), None)
        made[step.name] = failed or futures[step.name].result(raise_on_failure=False)
    return made


def require_success(outcomes: Sequence[ModelOutcome], report: Path) -> None:
    """Raises WorkError when a model failed."""
    if failed := [o for o in outcomes if o.failure]:
        first = f"{failed[0].cell}: {failed[0].failure}"
        raise WorkError(
            f"{len(failed)} of {len(outcomes)} models failed, the first being {first} The others are in {report}."
        )


def _named(step: Step) -> Task[[Step, Mapping[str, Artifact | LeftOut]], Artifact | LeftOut]:
    """The Prefect task that makes a step, under the name of its stage."""
    return make.with_options(name=step.stage.name)
