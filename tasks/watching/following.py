"""Follows a running study: measures its checkpoints as they come, and keeps its explorer up to date.

What takes torch is imported once there is a model to measure: a watcher sees the run's progress at once.
"""

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from headstream.tasks.report.explorer.model_files import ModelFiles
from headstream.tasks.storage.store import Store
from headstream.tasks.study.schema import Study
from headstream.tasks.watching.models_so_far import ScoresSoFar, WatchedModel
from headstream.tasks.watching.page_server import PageServer

if TYPE_CHECKING:
    from headstream.tasks.watching.checkpoint_measuring import CheckpointMeasuring

LOOK_SECONDS = 1.0
NICENESS = 10  # a tenth of the time that the run gets when both want a core
PAGE_SECONDS = 5.0  # between two pages at least


@contextmanager
def followed(study: Study, store: Store, server: PageServer | None) -> Iterator["Following"]:
    """Follow a study in a thread of its own while the block runs; none of its measurements are kept."""
    with TemporaryDirectory(prefix="headstream-", ignore_cleanup_errors=True) as folder:
        following = Following(study, store, Path(folder), server)
        threading.Thread(target=following.follow, daemon=True).start()
        try:
            yield following
        finally:
            following.end()


class Following:
    """Measures new checkpoints of `models`, and keeps `scores` and the page of a server up to date.

    The caller keeps `models` and `headline` up to date.
    """

    def __init__(self, study: Study, store: Store, folder: Path, server: PageServer | None) -> None:
        self.models: Sequence[WatchedModel] = ()
        self.headline = ""
        self.scores: Mapping[str, ScoresSoFar] = {}
        self._study, self._store, self._folder, self._server = study, store, folder, server
        self._tables: dict[str, Sequence[Path]] = {}  # those that scores were read from
        self._shown: Mapping[str, Sequence[Path]] = {}
        self._shown_at = 0.0
        self._ended = False

    def follow(self) -> None:
        """Measure, and wait for more, until `end`."""
        os.nice(NICENESS)  # on Linux this affects only the current thread
        while not self._ended and not any(model.training or model.behaviour for model in self.models):
            time.sleep(LOOK_SECONDS)
        if not self._ended:
            self._measure()

    def _measure(self) -> None:
        import torch

        from headstream.tasks.watching.checkpoint_measuring import READ_ERRORS, CheckpointMeasuring

        torch.set_num_threads(1)
        measuring = CheckpointMeasuring(self._store, self._folder)
        while not self._ended:
            models = self.models
            has_measured = measuring.measure_next(models)
            with suppress(*READ_ERRORS):  # the next round will find it
                self._read_scores(models, measuring)
                self._keep_page(models)
            if not has_measured:
                time.sleep(LOOK_SECONDS)

    def end(self) -> None:
        """Stop after the current measurement."""
        self._ended = True

    def _read_scores(self, models: Sequence[WatchedModel], measuring: "CheckpointMeasuring") -> None:
        for model in models:
            tables = measuring.tables(model)
            if tables == self._tables.get(model.label, []):
                continue
            scores = measuring.scores(model)
            if scores:
                self.scores = {**self.scores, model.label: scores}
                self._tables[model.label] = tables

    def _keep_page(self, models: Sequence[WatchedModel]) -> None:
        found = {model.label: self._files(model) for model in models}
        files = {label: own for label, own in found.items() if own}
        measured = {label: self._tables[label] for label in files}
        if self._server is None or measured == self._shown or time.monotonic() - self._shown_at < PAGE_SECONDS:
            return
        from headstream.tasks.watching.explorer_so_far import write_explorer_so_far

        page, version = self._folder / "explorer.html", str(time.time_ns())
        said = [self.headline, "What was measured so far is preliminary."]
        write_explorer_so_far(self._study, files, measured, page, said, version)
        self._server.show(page, version)
        self._shown, self._shown_at = measured, time.monotonic()

    def _files(self, model: WatchedModel) -> ModelFiles | None:
        """The files of a model that has scores; None for a model from elsewhere."""
        if not model.training or model.label not in self.scores:
            return None
        training = self._store.working_folder("training", model.training)
        tokens = self._store.working_folder("tokens", model.tokens)
        return ModelFiles(training, tokens) if training and tokens else None
