"""Scores of all heads of a model: a map for each score, a cell for each head, a bar for what colours mean."""

from collections.abc import Mapping
from math import ceil
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from pandas import DataFrame

from headstream.tasks.report.figures.style import BLUE, GRID, MUTED, ORANGE, WIDTH, as_map, cells, headline, panel, tint
from headstream.tasks.words.markdown import MISSING

_MAX_NUMBERED = 20  # cells side by side, in all maps of a row, that have room for a number
MAX_CELL_HEIGHT, MAX_MAP_HEIGHT = 0.36, 2.4  # inches
_TITLE = 0.3  # inches above a map, at least
_LEAST = 0.005  # below 0 that a number of two digits shows
_BAR = 24  # steps of the colour bar


def score_panels(label: str, heads: DataFrame, scores: Mapping[str, str], n_columns: int, unit: str) -> Figure:
    """Heads with their layer, head and scores, from 0 (no colour) to 1 (full colour) or, in orange, to -1.

    Layers go upward. `scores` are columns and the titles of their maps; `unit` says what full colour is.
    """
    n_layers, n_heads = heads.layer.max() + 1, heads["head"].max() + 1
    n_rows = ceil(len(scores) / n_columns)
    cell = min(MAX_CELL_HEIGHT, MAX_MAP_HEIGHT / n_layers)
    has_gap = len(scores) % n_columns > 0  # in the last row: names of heads stand below the row before it
    above, beside = ceil(_TITLE / cell) + has_gap, 1  # cells between maps
    upward = n_layers - 1 - heads.layer
    values = np.full((n_rows * (n_layers + above) + 1, n_columns * (n_heads + beside) - beside), np.nan)
    corners = {}
    for i, score in enumerate(scores):
        row, column = divmod(i, n_columns)
        corners[score] = (above + row * (n_layers + above), column * (n_heads + beside))
        values[corners[score][0] + upward, corners[score][1] + heads["head"]] = heads[score]
    image = tint(np.abs(values), BLUE)
    image[values < 0, :3] = to_rgb(ORANGE)
    # One panel for all maps: matplotlib takes longer for a panel than for all that is in it.
    figure, axes = panel(0.4 + cell * len(values))
    headline(figure, label)
    cells(axes, image, aspect="auto")
    lines: list[tuple[tuple[float, float], tuple[float, float]]] = []
    is_numbered = n_heads * n_columns <= _MAX_NUMBERED
    for score, (top, left) in corners.items():
        axes.text(left - 0.5, top - 0.62, scores[score], fontsize=9, fontweight="bold", va="bottom")
        right, bottom = left + n_heads - 0.5, top + n_layers - 0.5
        lines += [((left - 0.5, y), (right, y)) for y in np.arange(top - 0.5, bottom + 0.5)]
        lines += [((x, top - 0.5), (x, bottom)) for x in np.arange(left - 0.5, right + 0.5)]
        for row, head, value in zip(upward, heads["head"], heads[score], strict=True) if is_numbered else ():
            text = MISSING if np.isnan(value) else f"{value:z.2f}"
            axes.text(left + head, top + row, text, ha="center", va="center", fontsize=9, in_layout=False)
    axes.add_collection(LineCollection(lines, colors=GRID, linewidths=0.7), autolim=False)
    every_layer, every_head = ceil(0.16 / cell), 1 + n_heads * n_columns // 40  # as many names as fit
    lowest = {left: top + n_layers for top, left in corners.values()}  # below the last map of each column
    for left, below in lowest.items():
        for head in range(0, n_heads, every_head):
            axes.text(left + head, below - 0.35, f"H{head}", ha="center", va="top", fontsize=9, color=MUTED)
    rows = {top for top, _ in corners.values()}
    named = [(top + n_layers - 1 - layer, f"L{layer}") for top in rows for layer in range(0, n_layers, every_layer)]
    axes.set_yticks([place for place, _ in named], [name for _, name in named])
    axes.set_xticks([])
    as_map(axes)
    axes.tick_params(labelcolor=MUTED)
    _bar(figure, unit, is_signed=bool((values < -_LEAST).any()))
    return figure


def _bar(figure: Figure, unit: str, is_signed: bool) -> None:
    """What colours mean, to the upper right."""
    height = figure.get_size_inches()[1]
    axes = figure.add_axes((1 - 1.3 / WIDTH, 1 - 0.2 / height, 0.9 / WIDTH, 0.13 / height))
    axes.set_in_layout(False)
    low = -1 if is_signed else 0
    steps = np.linspace(low, 1, _BAR)[None]
    image = tint(np.abs(steps), BLUE)
    image[steps < 0, :3] = to_rgb(ORANGE)
    cells(axes, image, aspect="auto")
    axes.set_axis_off()
    style: dict[str, Any] = {"transform": axes.transAxes, "va": "center", "fontsize": 9, "color": MUTED}
    axes.text(-0.04, 0.45, f"{unit}  {low}", ha="right", **style)
    axes.text(1.04, 0.45, "1", ha="left", **style)
