"""The stages of [analysis]: each module here declares its section and its STAGE, and is found automatically."""

import pkgutil
from importlib import import_module

from headstream.tasks.study.stage import Stage

DECLARED: dict[str, Stage] = {}
"""Stages by name, in the order of plans and reports."""
ANALYSES: dict[str, Stage] = {}
"""The stages that measure a model; the others make inputs for these."""


def declare(*stages: Stage) -> None:
    """Add stages to [analysis]; to be called before a study is read."""
    for stage in sorted(stages, key=lambda stage: stage.order):
        DECLARED[stage.name] = stage
        if stage.measures_models:
            ANALYSES[stage.name] = stage


declare(*(import_module(f"{__name__}.{found.name}").STAGE for found in pkgutil.iter_modules(__path__)))
