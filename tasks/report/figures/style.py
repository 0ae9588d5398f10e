"""How every figure looks: one style for light and dark pages, what colours mean, blank panels, maps."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import Any, Literal
from warnings import catch_warnings, filterwarnings

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as MplPath

from headstream.tasks.results.study_results import StudyResults

WIDTH = 8.6  # inches: the width of a page on GitHub
LINE_LENGTH = 100  # characters of that width
INK, MUTED, GRID, CARD = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
IN_THE_DARK = {INK: "#e6edf3", MUTED: "#9198a1", GRID: "#3d444d", CARD: "#0d1117"}
GREY, AMBER, PINK = "#868e96", "#cc8400", "#cc79a7"  # middle tones, for both; most are from Okabe and Ito
BLUE, ORANGE, GREEN, PURPLE, TEAL = "#3b8fd4", "#d55e00", "#009e73", "#a05fd6", "#1a9e8f"
INDIGO, BRICK, OLIVE, CYAN = "#6477d3", "#c9504c", "#7f9128", "#1f9fc0"
SERIES = (GREY, AMBER, INDIGO, BRICK, OLIVE, CYAN)  # of what is neither a role nor read by queries, keys or values
KIND_COLORS = {"Q": BLUE, "K": ORANGE, "V": GREEN}  # what of a later head reads an earlier one
ROLE_COLORS = {"induction": PURPLE, "anti-induction": PINK, "previous token": TEAL}
DASHED, DOTTED = (0, (5, 1.5)), (0, (1.5, 1.5))

_DASHES = ("solid", (0, (6, 1.2)), (0, (1.2, 1.2)), (0, (8, 1.2, 1.2, 1.2)))
_MARKERS = ("o", "s", "^", "D")  # beside the dashes, since these are hard to tell apart on short lines
_MAX_NAMED = 8  # labels that one figure can tell apart
_MAX_ENDS = 16  # names at the ends of lines that have room above each other
_END = 0.155  # inches between them
CELLS = "cells"
"""The beginning of the ids of a map's cells, whose edges readers draw sharp."""
MAX_CELLS = 10_000  # of a map that is drawn as rectangles
_SHARP = 216  # dots an inch of what is no vector
_SHADES, _PIXELS = 100, 6  # of a colour; of a cell's side in a bitmap
_RECTANGLE = [MplPath.MOVETO, MplPath.LINETO, MplPath.LINETO, MplPath.LINETO, MplPath.CLOSEPOLY]
_STYLE: Any = {
    "svg.fonttype": "none",  # text that can be searched, in the reader's own font
    "svg.hashsalt": "headstream",
    "figure.dpi": 72,  # that of SVG
    "image.composite_image": False,  # several images of a panel stay as sharp as they are
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],  # the first two have the same widths
    "font.monospace": ["DejaVu Sans Mono", "Menlo", "Consolas", "monospace"],
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "legend.columnspacing": 1.4,
    "text.color": INK,
    "text.parse_math": False,
    "axes.titlecolor": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.facecolor": "none",
    "figure.facecolor": CARD,
    "figure.constrained_layout.use": True,
    "figure.titlesize": 11,
    "figure.titleweight": "bold",
    "figure.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.8,
    "lines.markersize": 3.5,
}
# Readers whose theme is dark get a dark card with light text; what doesn't know the rule shows the light card.
_DARK_RULES = "".join(
    f'[style*="{part}: {light}"]{{{part}:{dark}!important}}'
    for light, dark in IN_THE_DARK.items()
    for part in ("fill", "stroke")
)


class Palette:
    """How lines of each label look, the same in every figure.

    A colour for the depth, dashes and markers within one depth; of many models, most of one depth, a colour for each,
    and dashes once colours come again.
    """

    def __init__(self, n_layers: Mapping[str, int]) -> None:
        depths = Counter(n_layers.values())
        self._too_many = len(n_layers) > _MAX_NAMED
        one_by_one = self._too_many and max(depths.values()) > len(n_layers) / 2
        self._lines: dict[str, dict[str, Any]] = {}
        alike: Counter[int] = Counter()  # labels so far, by depth
        for place, (label, depth) in enumerate(sorted(n_layers.items(), key=lambda item: (item[1], item[0]))):
            color, kind = depth % len(SERIES), 0 if self._too_many else alike[depth] % len(_DASHES)
            if one_by_one:
                color, kind = place % len(SERIES), place // len(SERIES) % len(_DASHES)
            self._lines[label] = {"color": SERIES[color], "linestyle": _DASHES[kind], "marker": _MARKERS[kind]}
            alike[depth] += 1

    @classmethod
    def of(cls, results: StudyResults) -> "Palette":
        """The palette of a study's kinds of model."""
        return cls({row["label"]: row["n_layers"] for row in results.rows("answer")})

    def color(self, label: str) -> str:
        return str(self._lines[label]["color"])

    def line(self, label: str) -> dict[str, Any]:
        """How a label's lines are drawn: with dots or, when there are many, finer."""
        fine = {"linewidth": 0.9, "alpha": 0.7, "marker": ""} if self._too_many else {}
        return self._lines[label] | fine

    def dots(self, label: str) -> dict[str, Any]:
        """How a label's models are drawn where each is a single dot."""
        return self._lines[label] | {"linestyle": "", "markersize": 5, "alpha": 0.75}


def label_ends(axes: Axes, ends: Mapping[str, float], palette: Palette) -> None:
    """Name lines where they end, to the right of a panel, one above the other; of too many, the highest and lowest."""
    named = sorted(ends, key=lambda label: ends[label])
    named = named[: _MAX_ENDS // 2] + named[max(_MAX_ENDS // 2, len(named) - _MAX_ENDS // 2) :]
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)  # or what is drawn later would move it
    figure = axes.get_figure(root=True)
    assert figure
    gap = _END / (axes.get_position().height * figure.get_size_inches()[1])
    to_panel = axes.transScale + axes.transLimits
    places = np.array([to_panel.transform((axes.get_xlim()[1], ends[label]))[1] for label in named])
    for _ in range(100):  # push neighbours apart until none overlap
        overlaps = (gap - np.diff(places)).clip(min=0) / 2
        if overlaps.max(initial=0) < gap / 100:
            break
        places[:-1] -= overlaps
        places[1:] += overlaps
    if len(places) * gap < 1:  # beside the panel, not below it, where its axis is named
        ranks = gap * np.arange(len(places))
        places = places.clip(min=ranks, max=1 - ranks[::-1])
    for label, place in zip(named, places, strict=True):
        style: dict[str, Any] = {"color": palette.color(label), "fontsize": 9, "va": "center"}
        axes.text(1.015, place, label, transform=axes.transAxes, **style)


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save in one style, whatever characters the text holds."""
    with mpl.rc_context(_STYLE), catch_warnings():
        filterwarnings("ignore", message="Glyph .* missing from font")  # the reader's fonts may have it
        yield


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG for light and dark pages; equal figures give equal bytes."""
    if layout := figure.get_layout_engine():
        layout.execute(figure)  # here, since matplotlib would draw all of the figure once more for it
        with mpl.rc_context({"figure.constrained_layout.use": False}):
            figure.set_layout_engine(None)  # "none" would leave a placeholder, for which it would, too
    figure.savefig(path, format="svg", dpi=_SHARP, metadata={"Date": None, "Creator": None})
    dark = f'<style>[id^="{CELLS}"]{{shape-rendering:crispEdges}}'
    dark += f"@media (prefers-color-scheme: dark) {{{_DARK_RULES}}}</style>"
    path.write_text(path.read_text(encoding="utf-8").replace("</style>", f"</style>\n  {dark}", 1), encoding="utf-8")


def panel(height: float, width: float = WIDTH) -> tuple[Figure, Axes]:
    """A figure of that many inches with one panel."""
    figure = Figure((width, height))
    return figure, figure.subplots()


def panel_grid(label: str, n: int, n_columns: int, height: float, **sharing: Any) -> tuple[Figure, list[Axes]]:
    """A figure that is headed by a label and has `n` panels, row by row."""
    n_columns = ceil(n / ceil(n / n_columns))  # rows of as many panels, as far as that goes
    figure = Figure((WIDTH, height))
    headline(figure, label)
    panels = list(figure.subplots(ceil(n / n_columns), n_columns, squeeze=False, **sharing).flat)
    for axes in panels[n:]:
        axes.set_visible(False)
    return figure, panels[:n]


def headline(figure: Figure, label: str) -> None:
    """Head a figure with the label of its model."""
    figure.suptitle(label, x=0.012, ha="left")


def wrapped(title: str, n_columns: int) -> str:
    """A title broken into lines as long as one of so many panels side by side is wide."""
    return fill(title, LINE_LENGTH // n_columns)


def as_map(*panels: Axes) -> None:
    """Leave only the labels of axes whose cells or nodes are the picture."""
    for axes in panels:
        axes.tick_params(length=0, labelcolor=INK)
        axes.grid(False)
        axes.spines[:].set_visible(False)


def name_places(axis: XAxis | YAxis, names: Sequence[str]) -> None:
    """Give the places 0, 1, 2, ... of an axis names instead of ticks and grid lines."""
    axis.set_ticks(range(len(names)), names)
    axis.set_tick_params(length=0, labelcolor=INK)
    axis.grid(False)
    axis.axes.spines["left" if axis.axis_name == "y" else "bottom"].set_visible(False)


def cells(axes: Axes, image: np.ndarray, aspect: Literal["auto", "equal"] = "equal") -> None:
    """Draw a map, [row, column, red to alpha], as rectangles, which stay sharp whatever shows them; row 0 on top.

    Equal neighbours in a row are one rectangle. Maps of more than MAX_CELLS would make files of megabytes: they are
    bitmaps, each cell of which is many pixels.
    """
    n_rows, n_columns = image.shape[:2]
    axes.set(xlim=(-0.5, n_columns - 0.5), ylim=(n_rows - 0.5, -0.5), aspect=aspect)
    shades = image.copy()
    shades[..., 3] = np.round(image[..., 3] * _SHADES) / _SHADES
    if n_rows * n_columns > MAX_CELLS:
        sharp = shades.repeat(_PIXELS, axis=0).repeat(_PIXELS, axis=1)
        extent = (-0.5, n_columns - 0.5, n_rows - 0.5, -0.5)
        axes.imshow(sharp, interpolation="none", aspect=aspect, extent=extent)
        return
    corners: dict[tuple[float, ...], list[tuple[float, float]]] = {}
    for row, line in enumerate(shades):
        ends = [0, *(np.flatnonzero((line[1:] != line[:-1]).any(axis=1)) + 1), n_columns]
        for left, right in pairwise(ends):
            if right > left and line[left, 3]:
                x, end, y = left - 0.5, right - 0.5, row - 0.5
                corners.setdefault(tuple(line[left]), []).extend([(x, y), (end, y), (end, y + 1), (x, y + 1), (x, y)])
    for color, places in corners.items():
        codes = _RECTANGLE * (len(places) // len(_RECTANGLE))
        path = PathPatch(MplPath(places, codes), facecolor=color, linewidth=0, gid=f"{CELLS}-{len(axes.patches)}")
        axes.add_patch(path)


def tint(values: np.ndarray, color: str) -> np.ndarray:
    """Values from 0 to 1 as how opaque a colour is, so that it fits any page; NaN is transparent."""
    image = np.empty((*values.shape, 4))
    image[..., :3] = to_rgb(color)
    image[..., 3] = np.nan_to_num(values.clip(0, 1))
    return image
