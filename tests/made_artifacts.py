"""Artifacts of a study made in this process, without Prefect."""

from headstream.tasks.graph.materialising import materialise
from headstream.tasks.graph.step import Step, StepName
from headstream.tasks.graph.study_graph import study_graph
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.study.schema import Study


def made_steps(study: Study, until: str = "") -> tuple[list[Step], dict[StepName, Artifact]]:
    """The steps of a study, and what each of them made; those of a stage and all after it left out."""
    steps, made = study_graph(study), dict[StepName, Artifact]()
    for step in steps:
        if step.stage.name == until:
            break
        made[step.name] = materialise(step, step.given(made))
    return steps, made


def made_text(study: Study) -> dict[StepName, Artifact]:
    """The corpus and the tokens of a study that trains."""
    return made_steps(study, until="training")[1]
