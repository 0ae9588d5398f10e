"""The stages of [analysis]: each a module here, which declares its section and its STAGE, and is found by looking."""

import pkgutil
from importlib import import_module

from headstream.tasks.study.stage import Stage

_declared: list[Stage] = [import_module(f"{__name__}.{found.name}").STAGE for found in pkgutil.iter_modules(__path__)]
DECLARED: dict[str, Stage] = {stage.name: stage for stage in sorted(_declared, key=lambda stage: stage.order)}
"""By name, in the order in which plans and reports name them."""
ANALYSES = {name: stage for name, stage in DECLARED.items() if stage.measures_models}
"""Those that measure a model; the others make what these read."""
