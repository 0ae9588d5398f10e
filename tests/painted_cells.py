"""The maps of a figure, cell by cell, as they are painted."""

import numpy as np
from matplotlib.axes import Axes

from headstream.tasks.report.figures.style import CELLS


def painted(axes: Axes) -> np.ndarray:
    """The cells of a panel as [row, column, red to alpha]; what isn't painted is transparent."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    image = np.zeros((round(bottom - top), round(right - left), 4))
    for patch in axes.patches:
        if (patch.get_gid() or "").startswith(CELLS):
            for corners in patch.get_path().vertices.reshape(-1, 5, 2) + 0.5:
                (x, y), (end, below) = corners[0], corners[2]
                image[round(y) : round(below), round(x) : round(end)] = patch.get_facecolor()
    return image
