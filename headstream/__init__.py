"""Headstream in Python: a study's results as data frames, its models, and what they do with a text of your own.

>>> import headstream as hs
>>> model = hs.open("quick").model("2L4H")
>>> model.attention("the cat sat; the cat")["L1H0"]  # [query, key]
"""

from headstream.own_modules import find_own_modules

find_own_modules()

from headstream.opened_study import Results, UserError, WorkError, open, run, studies  # noqa: E402

__all__ = ["Results", "UserError", "WorkError", "open", "run", "studies"]
