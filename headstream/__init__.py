"""Headstream in Python: a study's results as data frames, its models, and what they do with a text of your own.

>>> import headstream as hs
>>> model = hs.open("quick").model("2L4H")
>>> model.attention("the cat sat; the cat")["L1H0"]  # [query, key]
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headstream.opened_study import Results, UserError, WorkError, open, run, studies

__all__ = ["Results", "UserError", "WorkError", "open", "run", "studies"]


def __getattr__(name: str) -> Any:
    """One of the names above, imported when it is first asked for: the command line needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from headstream import opened_study

    globals().update({each: getattr(opened_study, each) for each in __all__})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
