"""The stages of [analysis]: each a module here, which declares its section and its STAGE, and is found by looking."""

import pkgutil
from importlib import import_module

from headstream.tasks.study.stage import Stage

DECLARED: dict[str, Stage] = {}
"""By name, in the order in which plans and reports name them."""
ANALYSES: dict[str, Stage] = {}
"""Those that measure a model; the others make what these read."""


def declare(*stages: Stage) -> None:
    """Have a study's [analysis] know stages; to be called before a study is read."""
    for stage in sorted(stages, key=lambda stage: stage.order):
        DECLARED[stage.name] = stage
        if stage.measures_models:
            ANALYSES[stage.name] = stage


declare(*(import_module(f"{__name__}.{found.name}").STAGE for found in pkgutil.iter_modules(__path__)))
