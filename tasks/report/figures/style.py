"""How every figure looks: one style for light and dark pages, each kind of model's colour, axes of tokens."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from warnings import catch_warnings, filterwarnings

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from tasks.markdown import short_count

WIDTH = 8.6  # inches: the width of a page on GitHub
LINE_LENGTH = 100  # characters of that width
INK, MUTED, GRID, CARD = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
IN_THE_DARK = {INK: "#e6edf3", MUTED: "#9198a1", GRID: "#3d444d", CARD: "#0d1117"}
SCORE, INDUCTION, PREVIOUS_TOKEN = "#3b8fd4", "#a05fd6", "#1a9e8f"  # middle tones, for both
NEGATIVE = "#d55e00"  # of scores
KINDS = {"Q": "#3b8fd4", "K": "#d55e00", "V": "#009e73"}  # what of a later head reads an earlier one

_BY_DEPTH = ("#868e96", "#cc8400", "#3b8fd4", "#d55e00", "#cc79a7", "#009e73")  # after Okabe and Ito
_DASHES = ("solid", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (6, 1.5, 1.5, 1.5)))
_MAX_NAMED = 8  # labels that one figure can tell apart
_STYLE: Any = {
    "svg.fonttype": "none",  # text that can be searched, in the reader's own font
    "svg.hashsalt": "headstream",
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
    "text.color": INK,
    "text.parse_math": False,
    "axes.titlecolor": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.facecolor": "none",
    "figure.facecolor": CARD,
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


@dataclass(frozen=True)
class Picture:
    """A figure, one sentence that says what to see in it, and the SELECTs it is made of.

    Without a figure, the sentence says why there is none.
    """

    name: str
    sentence: str
    queries: tuple[str, ...]
    figure: Figure | None = None


class Palette:
    """How lines of each label look, the same in every figure: a colour for the depth, dashes within one depth."""

    def __init__(self, n_layers: Mapping[str, int]) -> None:
        colors = {depth: _BY_DEPTH[depth % len(_BY_DEPTH)] for depth in sorted(set(n_layers.values()))}
        self._too_many = len(n_layers) > _MAX_NAMED
        self._lines: dict[str, dict[str, Any]] = {}
        for depth, color in colors.items():
            for i, label in enumerate(sorted(label for label in n_layers if n_layers[label] == depth)):
                dashes = "solid" if self._too_many else _DASHES[i % len(_DASHES)]
                self._lines[label] = {"color": color, "linestyle": dashes}
        self._named = self._lines
        if self._too_many:
            self._named = {f"{n} layer{'s' * (n != 1)}": {"color": color} for n, color in colors.items()}

    def line(self, label: str) -> dict[str, Any]:
        """How a label's lines are drawn: with dots or, when there are many, finer."""
        return self._lines[label] | ({"linewidth": 0.9, "alpha": 0.7} if self._too_many else {"marker": "o"})

    def legend(self, figure: Figure) -> None:
        """Name the labels or, when they are too many, the depths, above a figure."""
        lines = [Line2D([], [], **line) for line in self._named.values()]
        columns = max(1, LINE_LENGTH // (max(map(len, self._named), default=0) + 8))
        figure.legend(lines, list(self._named), loc="outside upper left", ncols=columns, columnspacing=1.4)


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save in one style, whatever characters the text holds."""
    with mpl.rc_context(_STYLE), catch_warnings():
        filterwarnings("ignore", message="Glyph .* missing from font")  # the reader's fonts may have it
        yield


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG for light and dark pages; equal figures give equal bytes."""
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    dark = f"<style>@media (prefers-color-scheme: dark) {{{_DARK_RULES}}}</style>"
    path.write_text(path.read_text(encoding="utf-8").replace("</style>", f"</style>\n  {dark}", 1), encoding="utf-8")


def scale_by_tokens(*panels: Axes) -> None:
    """A logarithmic axis of tokens."""
    for axes in panels:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda tokens, _: short_count(tokens).replace(".0 ", " ")))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("tokens seen")


def tinted(values: np.ndarray, color: str) -> np.ndarray:
    """Values from 0 to 1 as how opaque a colour is, so that it fits any page; NaN is transparent."""
    image = np.empty((*values.shape, 4))
    image[..., :3] = to_rgb(color)
    image[..., 3] = np.nan_to_num(values.clip(0, 1))
    return image
