"""By how much paths lower the loss: all paths through no head, one head, two heads, and the strongest single paths."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame, isna

from headstream.tasks.report.figures.by_model import FigureOfEachModel
from headstream.tasks.report.figures.style import BRICK, INDIGO, INK, MUTED, WIDTH, name_places
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import counted, not_drawn
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed

_FIGURE = FigureOfEachModel(
    "path_terms",
    ("path_terms",),
    look=(
        "By how much the loss falls as paths are added: first the one that goes straight through, then those through"
        " one head, then those through two in a row. In another order each would come to something else."
    ),
    why_none="no model has heads whose effect on the loss was measured",
)
MAX_PATHS = 10
SMALL_SHARE = 0.01  # of all changes of the loss together: orders below it are told in one
_COLORS = (MUTED, INDIGO, BRICK)  # by heads on the path; longer ones look like the last
_BAR = 0.25  # inches
DIAMOND = "; diamond: rise of the loss without that order"


def path_term_bars(results: StudyResults) -> list[Picture]:
    """Nats that paths take off the loss, order by order and one by one."""
    terms = results.frame("path_terms").dropna(subset=["loss_effect_nats"])
    single = terms[terms.is_one_path].sort_values("loss_effect_nats", key=abs, ascending=False, kind="stable")

    def draw(label: str, paths: DataFrame) -> tuple[str, Figure]:
        orders = terms[(terms.label == label) & ~terms.is_one_path]
        told = _told(orders)
        return _sentence(label, told, len(orders) - len(told), paths), _bars(label, told, paths.head(MAX_PATHS))

    return _FIGURE.pictures(results, single, draw)


def _told(orders: DataFrame) -> DataFrame:
    """Orders but those that hardly change the loss, where there are several of these."""
    small = orders.loss_effect_nats.abs() < SMALL_SHARE * orders.loss_effect_nats.abs().sum()
    return orders[~small] if small.sum() > 1 else orders


def _sentence(label: str, told: DataFrame, n_small: int, paths: DataFrame) -> str:
    """By how much each order lowers the loss, and which single path lowers it most; these have no intervals."""
    effects = [f"{e:z.2f} nats ({_order(n)})" for n, e in zip(told.term_order, told.loss_effect_nats, strict=True)]
    bar = f"{100 * SMALL_SHARE:.0f} %"
    left = f"; each of {n_small} other orders changes it by less than {bar} of that" if n_small else ""
    best, n_negative = paths.loc[paths.loss_effect_nats.idxmax()], (paths.loss_effect_nats < 0).sum()
    weakest = not_drawn(len(paths) - MAX_PATHS, "path", "with smaller effects")
    held = " Normalisation keeps the scales that it has in the whole model." if paths.linearised.eq(True).any() else ""
    return (
        f"Added order by order, the paths of {label} lower its loss by {listed(effects)}{left}. Of paths through heads"
        f" the one that lowers it most is {best.term} ({best.loss_effect_nats:.2f}); {n_negative} of {len(paths)}"
        f" estimates are below 0.{weakest}{held}"
    )


def _order(n_heads: Any) -> str:
    if isna(n_heads):  # all paths that start there
        return "feed-forward layers"
    return f"through {counted(int(n_heads), 'head')}" if n_heads else "the direct path"


def _bars(label: str, orders: DataFrame, paths: DataFrame) -> Figure:
    heights = [len(orders), len(paths)]
    figure = Figure((WIDTH, 2.0 + _BAR * sum(heights)))
    above, below = figure.subplots(2, 1, height_ratios=heights)
    _draw(above, [_order(n) for n in orders.term_order], orders, digits=2)
    rises = orders.removal_effect_nats
    above.plot(rises, range(len(orders)), linestyle="", marker="D", markersize=5, color=INK, markerfacecolor="none")
    above.set_title(f"{label}: all paths of an order")
    above.set_xlabel(f"nats off the loss{DIAMOND if rises.notna().any() else ''}")
    _draw(below, list(paths.term), paths, digits=3)
    below.set_title("single paths")
    below.set_xlabel("nats off the loss that lower orders leave")
    return figure


def _draw(axes: Axes, names: Sequence[str], terms: DataFrame, digits: int) -> None:
    """A bar for each term, the first on top."""
    colors = [MUTED if isna(n) else _COLORS[min(int(n), len(_COLORS) - 1)] for n in terms.term_order]
    effects = terms.loss_effect_nats
    axes.barh(range(len(terms)), effects, height=0.7, color=colors, alpha=0.75)
    ends = effects.where(effects < 0, np.fmax(effects, terms.removal_effect_nats))  # beyond the diamond, if any
    for row, (effect, end) in enumerate(zip(effects, ends, strict=True)):
        side: dict[str, Any] = {"ha": "right", "xytext": (-7, 0)} if effect < 0 else {"ha": "left", "xytext": (7, 0)}
        axes.annotate(f"{effect:.{digits}f}", (end, row), textcoords="offset points", va="center", fontsize=9, **side)
    name_places(axes.yaxis, names)
    axes.set_ylim(len(terms) - 0.5, -0.5)
    axes.margins(x=0.14)  # for the numbers
    axes.axvline(0, color=MUTED, linewidth=0.8)
    axes.spines["bottom"].set_visible(False)
