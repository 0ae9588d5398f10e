"""Attention patterns side by side, small: their shape counts, not their tokens."""

from collections.abc import Mapping
from math import ceil

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from pandas import DataFrame

from tasks.report.figures.style import BLUE, GRID, WIDTH, panel_grid, tinted

N_COLUMNS = 3
TITLE = 0.55  # inches above a panel, its ticks below it included


def pattern_matrix(pattern: DataFrame) -> np.ndarray:
    """The weights of a pattern as [query, key]; keys that come after the query have 0."""
    n = pattern["query"].max() + 1
    weights = np.zeros((n, n))
    weights[pattern["query"], pattern["key"]] = pattern.weight
    return weights


def pattern_panels(label: str, patterns: Mapping[str, DataFrame]) -> Figure:
    """A panel for each pattern, by its title: a row is a query, a column a key, both counted from 0."""
    n_lines = max(title.count("\n") for title in patterns)
    height = ceil(len(patterns) / N_COLUMNS) * (WIDTH / N_COLUMNS + TITLE + 0.17 * n_lines) - 0.2
    figure, panels = panel_grid(label, len(patterns), N_COLUMNS, 0.3 + height)
    for axes, (title, pattern) in zip(panels, patterns.items(), strict=True):
        axes.imshow(tinted(pattern_matrix(pattern), BLUE), interpolation="none")
        axes.set_title(title, fontsize=9)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(4, integer=True))
        axes.grid(False)
        axes.spines[:].set(visible=True, color=GRID)
    return figure
