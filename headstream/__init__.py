"""Headstream in Python: a study's results as data frames, its models, and their attention on your own text.

>>> import headstream as hs
>>> model = hs.open("quick").model("2L4H")
>>> model.attention("the cat sat; the cat")["L1H0"]  # [query, key]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headstream.loaded_model import load
    from headstream.opened_study import Results, open, studies
    from headstream.started_study import run
    from headstream.tasks.errors import UserError, WorkError

__all__ = ["Results", "UserError", "WorkError", "load", "open", "run", "studies"]
_HOMES = {"UserError": "tasks.errors", "WorkError": "tasks.errors", "load": "loaded_model", "run": "started_study"}


def __getattr__(name: str) -> Any:
    """Import one of the names above when it is first used: the command line needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"headstream.{_HOMES.get(name, 'opened_study')}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
