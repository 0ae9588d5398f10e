"""A study run from Python, in a process of its own whose progress is printed: by name, by path, or as a dictionary."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headstream.arguments import text_of
from headstream.commands import run_command
from headstream.opened_study import Results, open
from headstream.tasks.errors import UserError
from headstream.tasks.studies.known_studies import find_study
from headstream.tasks.studies.own_names import reserve_name, study_file_of
from headstream.tasks.study.schema import Study, complete_study, read_study
from headstream.tasks.study.sources import located


def run(
    study: str | os.PathLike[str] | Mapping[str, Any] | Study, *, jobs: int | None = None, replace: bool = False
) -> Results:
    """Make everything that a study still lacks, as `headstream run` does, and open its results.

    A study is a name, the path of a file, or a dictionary with what a file would hold; paths in it are taken from the
    current folder. It runs in a process of its own, whose progress is printed here. `jobs` is the number of models
    made at once; with `replace` it replaces another study of its name.

    >>> results = hs.run({"name": "widths", "grid": {"d_model": [16, 32]}, "training": {"tokens": 20_000}})

    Raises:
        UserError: the study is wrong.
        WorkError: a model failed, or the machine did.
    """
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
        raise UserError(f"jobs must be a whole number from 1 on, got {jobs!r:.100}. Leave it out for one per core.")
    if isinstance(study, Mapping | Study):
        name = given = _reserved(study, replace)
    else:
        given = text_of(study, "a study")
        name = read_study(find_study(given)).name
    options = ([] if jobs is None else ["--jobs", str(jobs)]) + ["--replace"] * replace
    run_command(["run", given, *options])
    return open(name)


def _reserved(study: Mapping[str, Any] | Study, replace: bool) -> str:
    """The name of a study that has no file, under which this home now knows it.

    Raises:
        UserError: the study is wrong, or its name is another one's.
    """
    content = study.model_dump(mode="json", exclude_unset=True) if isinstance(study, Study) else _as_a_file_has(study)
    whole = complete_study(located(content, Path.cwd()))
    reserve_name(whole, study_file_of(whole), replace=replace)
    return whole.name


def _as_a_file_has(value: Any) -> Any:
    """A value as a study file would hold it: lists for ranges, tuples and arrays, text for paths."""
    if isinstance(value, Mapping):
        return {key: _as_a_file_has(held) for key, held in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_as_a_file_has(held) for held in value]
    return value
