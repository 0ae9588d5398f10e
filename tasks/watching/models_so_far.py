"""A model while its study runs: its training losses, and scores of its checkpoints, as far as they go."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from safetensors import SafetensorError, safe_open

from headstream.models.nodes import Head
from headstream.tasks.storage.sealing import RESUME
from headstream.tasks.storage.store import Store
from headstream.tasks.training.training_progress import STATE

if TYPE_CHECKING:
    import pandas as pd

SHOWN_SCORES = {"induction_random_period": "induction", "previous_token": "previous token"}
MAX_BEST_HEADS = 3  # shown for each score

LossCurve = Sequence[tuple[int, float]]  # tokens, nats


@dataclass(frozen=True)
class WatchedModel:
    """A model that a run trains, and the keys of its artifacts, each empty until the run has come to it."""

    label: str
    training: str
    tokens: str
    behaviour: str


@dataclass(frozen=True)
class ScoresSoFar:
    """Scores of a model's checkpoints, and the heads that score highest at the last of them."""

    validation: LossCurve
    sem: float | None
    n_windows: int
    preliminary: bool
    best: Mapping[str, Sequence[tuple[str, float]]]
    """Heads and their scores, by the name of the score."""


def training_losses(store: Store, model: WatchedModel) -> LossCurve:
    """A model's training losses, as far as they are on the disk: for a model in training, a few seconds old."""
    folder = store.working_folder("training", model.training) if model.training else None
    if folder is None:
        return ()
    for read, file in ((_logged, folder / RESUME / STATE), (_recorded, folder / "training.parquet")):
        try:
            return read(file, file.stat().st_mtime_ns)
        except (OSError, ValueError, LookupError, SafetensorError):  # not there yet, or there no longer
            continue
    return ()


@lru_cache(64)
def _logged(file: Path, changed: int) -> LossCurve:
    with safe_open(file, framework="np") as state:
        return [(row["tokens"], row["loss_nats"]) for row in json.loads(state.metadata()["log"])]


@lru_cache(64)
def _recorded(file: Path, changed: int) -> LossCurve:
    columns = pq.read_table(file, columns=["tokens", "loss_nats"]).to_pydict()
    return list(zip(columns["tokens"], columns["loss_nats"], strict=True))


def scores_so_far(folders: Sequence[Path], preliminary: bool) -> ScoresSoFar:
    """Read the scores in tables of these folders, which are of different checkpoints of one model.

    Raises: OSError when one is gone.
    """
    import pandas as pd  # a third of a second, before there are any scores

    losses = _rows(folders, "evaluations").sort_values("step")
    heads = _rows(folders, "heads")
    last, at_end = losses.iloc[-1], heads[heads.step == losses.step.max()] if len(heads) else heads
    best = {}
    for column, name in SHOWN_SCORES.items():
        found = at_end.dropna(subset=column).nlargest(MAX_BEST_HEADS, column) if len(at_end) else at_end
        best[name] = [(str(Head(row.layer, row.head)), getattr(row, column)) for row in found.itertuples()]
    known = losses.dropna(subset="tokens")
    return ScoresSoFar(
        validation=list(zip(known.tokens.astype(int).tolist(), known.validation_loss_nats.tolist(), strict=True)),
        sem=None if pd.isna(last.validation_loss_sem_nats) else float(last.validation_loss_sem_nats),
        n_windows=int(last.n_windows),
        preliminary=preliminary,
        best=best,
    )


def _rows(folders: Sequence[Path], table: str) -> "pd.DataFrame":
    import pandas as pd

    frames = [pd.read_parquet(folder / f"{table}.parquet") for folder in folders]
    return pd.concat([frame for frame in frames if len(frame)] or frames)
