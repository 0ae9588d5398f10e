"""The store as a plan sees it: what is there, why something isn't, and how long earlier work took."""

from headstream.tasks.graph.step import Inputs, Step
from headstream.tasks.storage.artifact import Artifact, Spec
from headstream.tasks.storage.store import Store
from headstream.tasks.study.stage import FLOPS_PER_SECOND


class StoreHistory:
    """A store, and what earlier runs left in it: the measure of what is still to come."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._earlier: dict[str, list[Artifact]] = {}
        self._assumed: set[str] = set()  # digests of what is made again, and may come out otherwise

    def look_up(self, step: Step, inputs: Inputs) -> tuple[Artifact | None, bool, str]:
        """The artifact of a step, if there is one; whether it stays as it is; and its line in a plan.

        For text, an artifact that differs in the version of its code alone counts: it is taken to come out the same.
        """
        spec = step.spec_of(inputs)
        if artifact := self._store.find(spec):
            made = f"made {artifact.manifest.created[:16]}"
            if self._assumed & {used.digest for used in spec.inputs.values()}:
                made += "; stays if its text comes out the same"
            return artifact, True, made
        is_text = not (step.makes_model or step.measures_model)
        before = self._before_the_code_changed(spec) if is_text else None
        if before:
            self._assumed.add(before.digest)
        return before, False, self._why_missing(spec)

    def seconds(self, step: Step) -> float:
        """The seconds that a step takes one core: as its stage declares, or by what earlier artifacts took."""
        done, cost = self._all_earlier(step.stage.name), step.stage.cost
        if cost.by_history == "mean" and done:
            return sum(artifact.manifest.seconds for artifact in done) / len(done)
        if cost.by_history == "speed":
            return step.size.flops / self._speed(done, step.size.device)
        return step.seconds

    def bytes(self, step: Step) -> int:
        """The bytes that a step will write: by its own estimate or, if it measures a model, the mean of its stage."""
        done = self._all_earlier(step.stage.name) if step.measures_model else []
        return sum(artifact.bytes for artifact in done) // len(done) if done else step.bytes

    def _speed(self, trainings: list[Artifact], device: str) -> float:
        """FLOPs a second of the trainings so far on such a device."""
        alike = [each.manifest.facts for each in trainings if each.manifest.numerics["device"] == device]
        seconds = sum(facts["seconds"] for facts in alike)
        return sum(facts["flops"] for facts in alike) / seconds if seconds else FLOPS_PER_SECOND[device]

    def _all_earlier(self, stage: str) -> list[Artifact]:
        """Everything that a stage has made, of whatever study."""
        if stage not in self._earlier:
            self._earlier[stage] = list(self._store.artifacts(stage))
        return self._earlier[stage]

    def _before_the_code_changed(self, spec: Spec) -> Artifact | None:
        """The latest artifact that differs from the one asked for in its code alone."""
        alike = [a for a in self._all_earlier(spec.stage) if a.manifest.config == spec.config and _has_inputs(a, spec)]
        return max(alike, key=lambda artifact: artifact.manifest.created, default=None)

    def _why_missing(self, spec: Spec) -> str:
        """The reasons for which the nearest earlier artifacts are not the one asked for."""
        reasons = set()
        for artifact in self._all_earlier(spec.stage):
            earlier = artifact.manifest
            if earlier.config != spec.config:
                continue
            same_inputs = _has_inputs(artifact, spec)
            if earlier.code_version == spec.code_version:
                reasons.add("device, precision, threads or compiling changed" if same_inputs else "its input changed")
            elif same_inputs:
                reasons.add("the code changed")
        return ", or ".join(sorted(reasons)) or "not made yet"


def _has_inputs(artifact: Artifact, spec: Spec) -> bool:
    """True if an artifact was made from what a spec asks for."""
    made_from = {role: used.digest for role, used in artifact.manifest.inputs.items()}
    return made_from == {role: used.digest for role, used in spec.inputs.items()}
