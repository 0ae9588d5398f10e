"""Attention patterns side by side, small: their shape counts, not their tokens."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from pandas import DataFrame

from tasks.report.figures.style import GRID, WIDTH, tinted

N_COLUMNS = 3
TITLE = 0.55  # inches above a panel, its ticks below it included


def pattern_matrix(pattern: DataFrame) -> np.ndarray:
    """The weights of a pattern as [query, key]; keys that come after the query have 0."""
    n = pattern["query"].max() + 1
    weights = np.zeros((n, n))
    weights[pattern["query"], pattern["key"]] = pattern.weight
    return weights


def pattern_panels(label: str, patterns: Mapping[str, DataFrame], color: str) -> Figure:
    """A panel for each pattern, by its title: a row is a query, a column a key, both counted from 0."""
    n_rows = -(-len(patterns) // N_COLUMNS)
    n_lines = max(title.count("\n") for title in patterns)
    height = n_rows * (WIDTH / N_COLUMNS + TITLE + 0.17 * n_lines) - 0.2
    figure = Figure(figsize=(WIDTH, 0.3 + height), layout="constrained")
    figure.suptitle(label, x=0.012, ha="left", fontsize=11, fontweight="bold")
    panels = list(figure.subplots(n_rows, N_COLUMNS, squeeze=False).flat)
    for axes, (title, pattern) in zip(panels, patterns.items(), strict=False):
        axes.imshow(tinted(pattern_matrix(pattern), color), interpolation="none")
        axes.set_title(title, fontsize=9)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(4, integer=True))
        axes.grid(False)
        axes.spines[:].set(visible=True, color=GRID)
    for axes in panels[len(patterns) :]:
        axes.set_visible(False)
    return figure
