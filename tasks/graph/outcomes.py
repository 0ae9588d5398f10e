"""The outcome of each model of a study: everything that was made of it, and the first error if there was one."""

import hashlib
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence

from headstream.tasks.graph.step import LeftOut, Step, StepName
from headstream.tasks.results.study_record import ModelOutcome
from headstream.tasks.storage.artifact import Artifact

Made = Mapping[StepName, Artifact | BaseException]  # what each step made, or why it made nothing

log = logging.getLogger(__name__)


def outcomes(steps: Sequence[Step], made: Made) -> list[ModelOutcome]:
    """The outcome of each model, in the order of the steps."""
    of_subject: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        if not step.is_shared:
            of_subject[step.subject].append(step)
    return [_outcome(step, of_subject[step.subject], made) for step in steps if step.makes_model]


def shared_artifacts(steps: Sequence[Step], made: Made) -> list[Artifact]:
    """The artifacts that belong to all models of a study."""
    found = [made[step.name] for step in steps if step.is_shared]
    return [artifact for artifact in found if isinstance(artifact, Artifact)]


def _outcome(model: Step, own: Sequence[Step], made: Made) -> ModelOutcome:
    found = [made[step.name] for step in own]
    artifacts = [artifact for artifact in found if isinstance(artifact, Artifact)]
    failed = made[model.name]
    if isinstance(failed, LeftOut):
        return ModelOutcome(model.subject, _unnamed(model), [], left_out=str(failed))
    if isinstance(failed, BaseException):  # and so there is nothing to measure
        errors: list[BaseException] = [failed]
    else:
        errors = [error for error in found if isinstance(error, BaseException)]
    for error in errors:
        log.error("%s: %s", model.subject, error)
    return ModelOutcome(model.subject, _model_id(model, made), artifacts, str(errors[0]) if errors else None)


def _model_id(model: Step, made: Made) -> str:
    artifact = made[model.name]
    if isinstance(artifact, Artifact):
        model_id: str = artifact.manifest.facts["model_id"]
        return model_id
    given = model.given(made)
    if any(isinstance(own, BaseException) for own in given.values()):
        return _unnamed(model)
    assert model.cell_id_of is not None
    return model.cell_id_of(model.spec_of(given))


def _unnamed(model: Step) -> str:
    """The name of a model of which it isn't known what it would be: that of its place."""
    return f"none-{hashlib.sha256(model.subject.encode()).hexdigest()[:8]}"
