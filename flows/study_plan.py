"""What a run of a study would do."""

from tasks.planning import PlannedStep, plan_steps
from tasks.study.schema import Study


def planned(study: Study) -> list[PlannedStep]:
    """Every step of a study, done or to run."""
    return list(plan_steps(study.name, study.corpus, study.tokenizer, study.costs, study.cells, study.analysis))
