"""Which heads attend alike: the distances of all pairs as a matrix, similar heads next to each other."""

from collections.abc import Mapping
from itertools import accumulate, groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from pandas import DataFrame

from tasks.report.figures.by_model import picture_each
from tasks.report.figures.style import BLUE, INK, ORANGE, Picture, as_map, panel, tint
from tasks.report.sentences import counted
from tasks.results.study_results import StudyResults

QUERIES = ("head_similarity", "head_clusters")
SIDE, LARGEST_CELL = 6.6, 0.42  # inches at most
NARROWEST = 3.4  # inches that a title needs
MAX_NUMBERED = 16  # heads side by side that have room for numbers
MAX_LABELLED = 40

LOOK = "The fuller the colour, the more alike two heads attend."

Head = tuple[int, int]  # layer, head


def head_similarity(results: StudyResults) -> list[Picture]:
    """The Jensen-Shannon distance between the attention of all pairs of heads, clusters outlined."""
    pairs, clusters = (results.frame(query) for query in QUERIES)

    def draw(label: str, of_model: DataFrame) -> tuple[str, Figure]:
        of_label = clusters[clusters.label == label]
        cluster_of = dict(zip(zip(of_label.layer, of_label["head"], strict=True), of_label.cluster, strict=True))
        return _sentence(label, of_model, cluster_of), _matrix(label, of_model, cluster_of)

    known = pairs.dropna(subset=["jensen_shannon_distance"])
    return picture_each(results, "similarity", known, QUERIES, "no model has two heads that were compared", draw, LOOK)


def _sentence(label: str, pairs: DataFrame, cluster_of: Mapping[Head, int]) -> str:
    """Which two heads are closest, how many clusters there are and how many pairs are redundant."""
    nearest = pairs.loc[pairs.jensen_shannon_distance.idxmin()]
    first, second = (_label(nearest[f"{which}_layer"], nearest[f"{which}_head"]) for which in ("first", "second"))
    distance, tried = nearest.jensen_shannon_distance, pairs.is_redundant.dropna()
    told = [f"In {label}, {first} and {second} attend most alike (distance {distance:.2f})."]
    if cluster_of:
        n_clusters = counted(len(set(cluster_of.values())), "cluster")
        told.append(f"Its {len(cluster_of)} heads fall into {n_clusters} (outlined).")
    redundant = f"Redundant pairs (in orange): {tried.sum()} of {len(tried)} tried."
    return " ".join([*told, redundant if len(tried) else "Whether pairs are redundant was not measured."])


def _matrix(label: str, pairs: DataFrame, cluster_of: Mapping[Head, int]) -> Figure:
    """A cell for each pair, twice; in the order of clusters where there are any."""
    first, second = (
        list(zip(pairs[f"{which}_layer"], pairs[f"{which}_head"], strict=True)) for which in ("first", "second")
    )
    heads = list(cluster_of) or sorted({*first, *second})
    n = len(heads)
    rows, columns = ([heads.index(head) for head in side] for side in (first, second))
    distances = np.full((n, n), np.nan)
    np.fill_diagonal(distances, 0.0)
    distances[rows, columns] = distances[columns, rows] = pairs.jensen_shannon_distance
    cell = min(LARGEST_CELL, SIDE / n)
    figure, axes = panel(n * cell + 0.7, max(NARROWEST, n * cell + 0.7))
    axes.set_anchor("NW")
    axes.imshow(tint(1 - distances, BLUE), interpolation="none")
    if n <= MAX_NUMBERED:
        _write(axes, distances)
    sizes = [len(list(of_cluster)) for _, of_cluster in groupby(cluster_of.values())]
    for size, end in zip(sizes, accumulate(sizes), strict=True):
        _frame(axes, end - size, end - size, size, INK)
    for row, column, is_redundant in zip(rows, columns, pairs.is_redundant.eq(True).fillna(False), strict=True):
        if is_redundant:
            _frame(axes, row, column, 1, ORANGE)
            _frame(axes, column, row, 1, ORANGE)
    labelled = range(0, n, 1 + n // MAX_LABELLED)
    names = [_label(*heads[i]) for i in labelled]
    axes.set_xticks(labelled, names, rotation=90)
    axes.set_yticks(labelled, names)
    as_map(axes)
    axes.set_title(f"{label}: distance between patterns")
    return figure


def _label(layer: int, head: int) -> str:
    return f"L{layer}H{head}"


def _write(axes: Axes, distances: np.ndarray) -> None:
    """The distances of pairs, like `.35`."""
    for (row, column), distance in np.ndenumerate(distances):
        if row != column and distance == distance:
            text = f"{distance:.2f}".removeprefix("0")
            axes.text(column, row, text, ha="center", va="center", fontsize=8)


def _frame(axes: Axes, row: int, column: int, size: int, color: str) -> None:
    """A frame around a square of cells, the first of which is given."""
    style: dict[str, Any] = {"facecolor": "none", "edgecolor": color, "linewidth": 1.6, "clip_on": False}
    axes.add_patch(Rectangle((column - 0.5, row - 0.5), size, size, **style))
