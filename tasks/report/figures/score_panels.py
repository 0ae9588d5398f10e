"""Scores of all heads of a model: a panel for each score, a cell for each head."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from pandas import DataFrame

from tasks.markdown import MISSING
from tasks.report.figures.style import BLUE, GRID, MUTED, ORANGE, as_map, panel_grid, tint

MAX_NUMBERED = 20  # cells side by side, in all panels of a row, that have room for a number


def score_panels(label: str, heads: DataFrame, scores: Sequence[str], n_columns: int) -> Figure:
    """Heads with their layer, head and scores, from 0 (no colour) to 1 (full colour) or, in orange, to -1."""
    n_layers, n_heads = heads.layer.max() + 1, heads["head"].max() + 1
    height = 0.3 + ceil(len(scores) / n_columns) * (0.55 + 0.36 * n_layers)
    figure, panels = panel_grid(label, len(scores), n_columns, height, sharex=True, sharey=True)
    for i, (axes, score) in enumerate(zip(panels, scores, strict=True)):
        values = np.full((n_layers, n_heads), np.nan)
        values[heads.layer, heads["head"]] = heads[score]
        image = tint(np.abs(values), BLUE)
        image[values < 0, :3] = to_rgb(ORANGE)
        axes.imshow(image, interpolation="none", aspect="auto")
        axes.set_title(score, fontsize=9)
        numbered = range(0, n_heads, 1 + n_heads * n_columns // 40)  # as many as fit side by side
        axes.set_xticks(numbered, [f"H{head}" for head in numbered])
        axes.set_yticks(range(n_layers), [f"L{layer}" for layer in range(n_layers)])
        as_map(axes)
        axes.tick_params(labelcolor=MUTED, labelbottom=i + n_columns >= len(scores))
        axes.hlines(np.arange(n_layers + 1) - 0.5, -0.5, n_heads - 0.5, color=GRID, linewidth=0.7)
        axes.vlines(np.arange(n_heads + 1) - 0.5, -0.5, n_layers - 0.5, color=GRID, linewidth=0.7)
        if n_heads * n_columns <= MAX_NUMBERED:
            for layer, head in zip(heads.layer, heads["head"], strict=True):
                value = values[layer, head]
                text = MISSING if np.isnan(value) else f"{value:.2f}"
                axes.text(head, layer, text, ha="center", va="center", fontsize=9)
    return figure
