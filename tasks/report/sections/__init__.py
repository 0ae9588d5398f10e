"""The sections of a report, which are found by looking: a folder here is one, and all that is its own lies in it.

`ORDER` in its `__init__.py` places it in the report; `section.md.jinja` is its text; its *.sql are SELECTs by the
names that templates ask for (tasks/results/study_results.py finds them), those called explorer_* being data of the
explorer; and each public function of its modules from `results: StudyResults` to `list[Picture]` is a figure.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import isfunction
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from headstream.tasks.report.pictures import Picture
from headstream.tasks.results.study_results import StudyResults

Drawing = Callable[[StudyResults], list[Picture]]
DRAWS = {"results": StudyResults, "return": list[Picture]}  # annotations of a figure


def section_names() -> list[str]:
    """The names of the sections' folders, in the order of the report."""
    return [section.__name__.rpartition(".")[2] for section in _sections()]


def figures() -> dict[str, Drawing]:
    """The figures of all sections, by the names that templates ask for. To import them takes a second."""
    found: dict[str, Drawing] = {}
    for section in _sections():
        for module in _modules_in(section.__path__, section.__name__):
            found |= {name: value for name, value in vars(module).items() if _is_figure(name, value, module)}
    return found


def _sections() -> list[ModuleType]:
    return sorted(_modules_in(__path__, __name__), key=lambda section: section.ORDER)


def _modules_in(path: Iterable[str], package: str) -> list[ModuleType]:
    return [import_module(f"{package}.{module.name}") for module in iter_modules(path)]


def _is_figure(name: str, value: Any, module: ModuleType) -> bool:
    own = isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    return own and value.__annotations__ == DRAWS
