"""The checkpoints of one training as people have them: in a folder by their steps, or as branches in a cache.

Names that are known: step1000 of Pythia, stage1-step1000-tokens5B of OLMo, checkpoint-1000, global_step1000, iter_1000.
The cache of Hugging Face keeps branches as refs/NAME, each with the name of a folder of snapshots/.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from headstream.tasks.errors import UserError
from headstream.tasks.importing.open_foreign import SNAPSHOTS, holds_model

REFS, MAIN = "refs", "main"
_STEP = re.compile(r"step[-_=]?(\d+)", re.IGNORECASE)
_CHECKPOINT = re.compile(r"(?:checkpoint|ckpt|iter|iteration)[-_=]?(\d+)|^(\d+)$", re.IGNORECASE)
_TOKENS = re.compile(r"tokens[-_=]?(\d+(?:\.\d+)?)([KMBT]?)(?![A-Za-z0-9])", re.IGNORECASE)
_TRAINING = re.compile(r"(?:stage|ingredient|seed|run)[-_=]?\d+", re.IGNORECASE)
_LAST_NUMBER = re.compile(r"(\d+)(?!.*\d)")
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_SHOWN = 5  # names in a message


@dataclass(frozen=True)
class Revisions:
    """The checkpoints in a folder, by their steps, and the names of others whose step isn't known."""

    paths: tuple[Path, ...]
    left_out: tuple[str, ...]


def revisions_in(folder: Path) -> Revisions | None:
    """The checkpoints in a folder that isn't a model itself; None if it holds no models with steps in their names.

    Numbers of other kinds, as in run1 and run2, are no steps. Of a cache without steps it is the main branch.

    Raises:
        UserError: they are of several trainings, or two are of one step.
    """
    if not os.path.isdir(folder) or holds_model(folder):
        return None
    within = folder / SNAPSHOTS if (folder / SNAPSHOTS).is_dir() else folder
    found = sorted(path for path in within.glob("*") if path.is_dir() and holds_model(path))
    steps = {path: step for path in found if (step := _named_step(revision_name(path))) is not None}
    chosen = sorted(steps, key=lambda path: steps[path])
    require_one_training(chosen)
    for one, other in pairwise(chosen):
        if steps[one] == steps[other]:
            raise UserError(f"{one} and {other} are both of step {steps[one]:,}. Give those of one training in a list.")
    if not chosen and within != folder:
        chosen = found if len(found) == 1 else [path for path in found if revision_name(path) == MAIN]
    left_out = (revision_name(path) or path.name for path in found if path not in chosen)
    return Revisions(tuple(chosen), tuple(left_out)) if chosen else None


def require_one_training(paths: Sequence[Path]) -> None:
    """Refuse checkpoints whose names are of different stages, ingredients, seeds or runs: each counts its own steps."""
    trainings = {tuple(_TRAINING.findall(revision_name(path))): path for path in paths}
    if len(trainings) > 1:
        raise UserError(
            f"{names_of(list(trainings.values()))} are of different trainings, by their names, and each counts its own"
            " steps. Give those of one: by a pattern, or in a list."
        )


def revision_name(path: Path) -> str:
    """A checkpoint's name: that of its folder or file, or in a cache that of its branch."""
    if path.parent.name != SNAPSHOTS:
        return path.name if path.is_dir() else path.stem
    refs = path.parent.parent / REFS
    branches = sorted(ref.name for ref in refs.glob("*") if ref.is_file() and _commit(ref) == path.name)
    return next((name for name in branches if _named_step(name) is not None), branches[0] if branches else "")


def _commit(ref: Path) -> str:
    return ref.read_text("utf-8", "replace").strip()


def step_in(path: Path) -> int | None:
    """The step in a checkpoint's name, or else the last number there or in its folder's name.

    1000 of `step1000-tokens4B`, `checkpoint-1000`, `step1000.pt` and `1000/model.pt`.
    """
    for name in (revision_name(path), path.parent.name):
        step, number = _named_step(name), _LAST_NUMBER.search(name)
        if step is None and number:
            step = int(number[1])
        if step is not None:
            return step
    return None


def _named_step(name: str) -> int | None:
    found = _STEP.search(name) or _CHECKPOINT.search(name)
    return int(next(filter(None, found.groups()))) if found else None


def tokens_in(path: Path) -> int | None:
    """The tokens that a checkpoint was trained on, as its name has them: 4 billion of `step1000-tokens4B`."""
    found = _TOKENS.search(revision_name(path))
    return round(float(found[1]) * _UNITS[found[2].upper()]) if found else None


def names_of(paths: Sequence[Path]) -> str:
    """Paths as a message has them: the first few, and how many more there are."""
    shown, more = [str(path) for path in paths[:_SHOWN]], len(paths) - _SHOWN
    return f"{', '.join(shown)} and {more} more" if more > 0 else " and ".join([", ".join(shown[:-1]), shown[-1]])
