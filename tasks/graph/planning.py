"""A plan: each step's state in the store, why, and how long and how large what is missing will be."""

import heapq
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headstream.tasks import places
from headstream.tasks.errors import WorkError
from headstream.tasks.graph.step import LeftOut, Step, StepName
from headstream.tasks.graph.store_history import StoreHistory
from headstream.tasks.graph.study_graph import study_graph
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.study.schema import Study

BYTES_INDEXED_PER_MODEL = 1_000_000


@dataclass(frozen=True)
class PlannedArtifact:
    """An artifact that a study needs: made or to make, why, and what making it takes.

    That is seconds of one core, bytes of disk, and bytes of memory where its stage counts them.
    """

    stage: str
    subject: str
    done: bool
    why: str
    seconds: float = 0.0
    bytes: int = 0
    is_shared: bool = False  # by all models
    measures_model: bool = False
    in_work: bool = False
    memory_bytes: int = 0


def plan_artifacts(study: Study) -> list[PlannedArtifact]:
    """Every artifact that a study needs, in the order of its steps."""
    return plan_steps(study_graph(study))


def plan_steps(steps: Sequence[Step]) -> list[PlannedArtifact]:
    """The artifact of each step.

    A corpus or tokens that changed code will make again are taken to come out the same: what follows them says so.
    """
    history, found = StoreHistory(open_store()), dict[StepName, Artifact | LeftOut]()
    return [_planned(step, history, found) for step in steps]


def _planned(step: Step, history: StoreHistory, found: dict[StepName, Artifact | LeftOut]) -> PlannedArtifact:
    """The plan of a step; adds its artifact, where the store has it, to those found, or why there is none to make."""
    lacking = next((role for role, name in step.inputs.items() if name not in found), None)
    if not lacking and (left_out := step.left_out(found)):
        found[step.name] = left_out
        done, why = True, str(left_out)
    elif lacking:
        done, why = False, f"its {lacking} will be {'read' if lacking == 'corpus' else 'made'} first"
    else:
        artifact, done, why = history.look_up(step, step.given(found))
        if artifact:
            found[step.name] = artifact
    seconds, size = (0.0, 0) if done else (history.seconds(step), history.bytes(step))
    memory = 0 if done or step.counted is None else step.counted.memory_bytes
    return PlannedArtifact(
        *step.name, done, why, seconds, size, step.is_shared, step.measures_model, memory_bytes=memory
    )


def require_space(planned: Iterable[PlannedArtifact]) -> None:
    """Raises WorkError when the disk has no room for what is to run, and for the warehouse that comes of it."""
    to_run = [step for step in planned if not step.done]
    if not to_run:
        return
    folder, warehouse = places.home(), places.warehouse_file()
    indexed = BYTES_INDEXED_PER_MODEL * len({step.subject for step in to_run})
    copy = warehouse.stat().st_size if warehouse.exists() else 0
    needed = sum(step.bytes for step in to_run) + 2 * indexed + copy  # it is built beside the one that is read
    free = shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free
    if needed > free:
        raise WorkError(
            f"The study will write about {needed / 1e6:,.0f} MB to {folder}, which has {free / 1e6:,.0f} MB free. Free"
            " disk space (`headstream gc` removes what no study needs), or shorten the grid or `checkpoints`."
        )


def seconds_left(planned: Iterable[PlannedArtifact], jobs: int) -> float:
    """The time that the rest takes with `jobs` steps at a time: text and costs run alone, on one core.

    A model is measured once it is made; of what hasn't begun, what takes longest comes first.
    """
    to_run = [step for step in planned if not step.done]
    free_at, made_at = [sum(step.seconds for step in to_run if step.is_shared)] * jobs, defaultdict[str, float](float)
    measured = [step for step in to_run if step.measures_model]
    made, begun = defaultdict[str, float](float), {step.subject for step in to_run if step.in_work}
    for step in to_run:
        if not (step.is_shared or step.measures_model):
            made[step.subject] += step.seconds
    for model in sorted(made, key=lambda model: (model not in begun, -made[model])):
        made_at[model] = heapq.heappop(free_at) + made[model]
        heapq.heappush(free_at, made_at[model])
    for step in sorted(measured, key=lambda step: (made_at[step.subject], not step.in_work, -step.seconds)):
        begins = max(heapq.heappop(free_at), made_at[step.subject])
        heapq.heappush(free_at, begins + step.seconds)
    return max(free_at)
