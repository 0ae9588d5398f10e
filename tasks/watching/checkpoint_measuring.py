"""Preliminary measurements of checkpoints of models in training: those of the stage `behaviour`, on less text."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError

from headstream.tasks.errors import WorkError
from headstream.tasks.measuring.behaviour import measure_behaviour
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.storage.store import Store
from headstream.tasks.study.analyses.behaviour_config import BehaviourConfig
from headstream.tasks.training.checkpoints import checkpoint_steps
from headstream.tasks.watching.models_so_far import ScoresSoFar, WatchedModel, scores_so_far

BUDGET = BehaviourConfig(
    loss_windows=32, pattern_windows=16, fixed_period_sequences=4, random_period_sequences=16, passage_tokens=2
)
READ_ERRORS = (OSError, ValueError, SafetensorError)  # that reading may raise when a model finishes or starts again


@dataclass(frozen=True)
class ModelAtStep(TrainedModel):
    """A model at one of its checkpoints, which may be in training."""

    step: int = 0

    @property
    def steps(self) -> list[int]:
        """Only the step that is measured."""
        return [self.step]


class CheckpointMeasuring:
    """Measures every checkpoint of a study's models once, one at a time, into subfolders of a folder."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store, self._folder = store, folder
        self._tables: dict[str, dict[int, Path]] = {}
        self._tried: set[tuple[Path, int]] = set()

    def measure_next(self, models: Iterable[WatchedModel]) -> bool:
        """Measure one more checkpoint, the last ones of models first; returns False if there was none."""
        waiting = [(*checkpoint, model) for model in models for checkpoint in self._waiting(model)]
        if not waiting:
            return False
        _, step, folder, model = max(waiting, key=lambda checkpoint: checkpoint[:2])
        self._tried.add((folder, step))
        tokens, written = self._store.working_folder("tokens", model.tokens), self._folder / f"{len(self._tried)}"
        with suppress(*READ_ERRORS, WorkError):
            written.mkdir()
            if tokens:
                measure_behaviour(BUDGET, ModelAtStep(model.label, folder, tokens, written, step=step))
                self._tables.setdefault(model.label, {})[step] = written
        return True

    def tables(self, model: WatchedModel) -> list[Path]:
        """Folders of tables on a model's checkpoints: those that the run has measured, or else those measured here."""
        done = self._measured_by_run(model)
        return [done] if done else [folder for _, folder in sorted(self._tables.get(model.label, {}).items())]

    def scores(self, model: WatchedModel) -> ScoresSoFar | None:
        """The scores in these tables; None if there are none yet."""
        folders = self.tables(model)
        is_preliminary = folders != [self._measured_by_run(model)]
        return scores_so_far(folders, is_preliminary) if folders else None

    def _waiting(self, model: WatchedModel) -> list[tuple[bool, int, Path]]:
        """Checkpoints of a model that are still to be measured: True for its last one, step, and folder."""
        folder = self._store.working_folder("training", model.training) if model.training and model.tokens else None
        if folder is None or self._measured_by_run(model):
            return []
        steps, done = checkpoint_steps(folder), self._tables.get(model.label, {})
        return [(s == steps[-1], s, folder) for s in steps if s not in done and (folder, s) not in self._tried]

    def _measured_by_run(self, model: WatchedModel) -> Path | None:
        folder = self._store.root / "behaviour" / model.behaviour
        return folder if model.behaviour and folder.is_dir() else None
