"""Which heads attend alike: the distances of all pairs as a matrix, similar heads next to each other."""

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from pandas import DataFrame

from headstream.models.heads.paired_ablation import CHEAP_SHARE
from headstream.models.nodes import Head
from headstream.tasks.report.figures.by_model import FigureOfEachModel
from headstream.tasks.report.figures.style import BLUE, GRID, INK, ORANGE, WIDTH, as_map, cells, tint
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import counted
from headstream.tasks.results.study_results import StudyResults

_SIDE, _MAX_CELL = 3.7, 0.42  # inches at most
LABELS = 0.7  # inches beside and below
_MAX_NUMBERED = 10  # heads side by side that have room for numbers
MAX_LABELLED = 24
_MAX_NAMED = 48  # heads whose names have room on the map; of more, those in redundant pairs are named

_FIGURE = FigureOfEachModel(
    "similarity",
    ("head_similarity", "head_clusters"),
    look="Left, the fuller the colour, the more alike two heads attend; right, heads that attend alike lie close.",
    why_none="no model has two heads that were compared",
)


def head_similarity(results: StudyResults) -> list[Picture]:
    """The Jensen-Shannon distance between the attention of all pairs of heads, clusters outlined."""
    pairs, clusters = (results.frame(query) for query in _FIGURE.queries)

    def draw(label: str, of_model: DataFrame) -> tuple[str, Figure]:
        of_label = clusters[clusters.label == label]
        cluster_of = dict(zip(map(Head, of_label.layer, of_label["head"]), of_label.cluster, strict=True))
        return _sentence(label, of_model, cluster_of), _figure(label, of_model, cluster_of)

    known = pairs.dropna(subset=["jensen_shannon_distance"])
    return _FIGURE.pictures(results, known, draw)


def _sentence(label: str, pairs: DataFrame, cluster_of: Mapping[Head, int]) -> str:
    """Which two heads are closest, how many clusters there are and how many pairs are redundant."""
    nearest = pairs.loc[pairs.jensen_shannon_distance.idxmin()]
    first, second = (Head(nearest[f"{which}_layer"], nearest[f"{which}_head"]) for which in ("first", "second"))
    distance, tried = nearest.jensen_shannon_distance, pairs.dropna(subset=["is_redundant"])
    told = [f"In {label}, {first} and {second} attend most alike (distance {distance:.2f})."]
    if cluster_of:
        n_clusters = counted(len(set(cluster_of.values())), "cluster")
        told.append(f"Its {len(cluster_of)} heads fall into {n_clusters} (those of two or more are outlined).")
    could = (tried.costlier_share < CHEAP_SHARE) | tried.is_redundant.astype(bool)
    bar = f"{100 * CHEAP_SHARE:.0f}\u00a0%"
    could_be = f"; each head alone costs under {bar}, as such a pair needs, in {could.sum()} of the pairs tried"
    known = could_be if tried.costlier_share.notna().all() else ""
    redundant = f"Redundant pairs (in orange): {tried.is_redundant.sum()} of {len(tried)} tried{known}."
    return " ".join([*told, redundant if len(tried) else "Whether pairs are redundant was not measured."])


def places_on_a_map(distances: Float[np.ndarray, "head head"]) -> Float[np.ndarray, "head 2"]:
    """Places whose distances are as near to these as a plane allows; what is unknown counts as the largest distance.

    Source: classical multidimensional scaling, Torgerson 1952; Clark et al. 2019 draw heads so.
    """
    squares = np.square(np.where(np.isnan(distances), np.nanmax(distances), distances))
    centred = squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    places = vectors[:, :-3:-1] * np.sqrt(values[:-3:-1].clip(min=0))
    return places * np.where(places[0] < 0, -1, 1)  # eigenvectors have no sign of their own


def _figure(label: str, pairs: DataFrame, cluster_of: Mapping[Head, int]) -> Figure:
    """A cell for each pair, twice, in the order of clusters where there are any; and heads as dots on a map."""
    first, second = (list(map(Head, pairs[f"{which}_layer"], pairs[f"{which}_head"])) for which in ("first", "second"))
    heads = list(cluster_of) or sorted({*first, *second})
    n = len(heads)
    rows, columns = ([heads.index(head) for head in side] for side in (first, second))
    distances = np.full((n, n), np.nan)
    np.fill_diagonal(distances, 0.0)
    distances[rows, columns] = distances[columns, rows] = pairs.jensen_shannon_distance
    side = n * min(_MAX_CELL, _SIDE / n)
    figure = Figure((WIDTH, max(side, 2.6) + LABELS))
    axes, plane = figure.subplots(1, 2, width_ratios=(side + LABELS, WIDTH - side - LABELS))
    axes.set_anchor("NW")
    redundant = pairs.is_redundant.eq(True).fillna(False)
    stand_in = {head for side in (first, second) for head, is_one in zip(side, redundant, strict=True) if is_one}
    _map(plane, heads, places_on_a_map(distances), set(heads) if n <= _MAX_NAMED else stand_in)
    cells(axes, tint(1 - distances, BLUE))
    if n <= _MAX_NUMBERED:
        _write(axes, distances)
    sizes = [len(list(of_cluster)) for _, of_cluster in groupby(cluster_of.values())]
    for size, end in zip(sizes, accumulate(sizes), strict=True):
        if size > 1:
            _frame(axes, end - size, end - size, size, INK)
    for row, column, is_redundant in zip(rows, columns, pairs.is_redundant.eq(True).fillna(False), strict=True):
        if is_redundant:
            _frame(axes, row, column, 1, ORANGE)
            _frame(axes, column, row, 1, ORANGE)
    labelled = range(0, n, 1 + n // MAX_LABELLED)
    names = [str(heads[i]) for i in labelled]
    axes.set_xticks(labelled, names, rotation=90)
    axes.set_yticks(labelled, names)
    as_map(axes)
    axes.set_title(f"{label}: distances")
    return figure


def _map(axes: Axes, heads: Sequence[Head], places: np.ndarray, named: Collection[Head]) -> None:
    """Each head at its place, the named ones with their names; the later its layer, the fuller its colour."""
    layers = np.array([head.layer for head in heads])
    shades = 0.4 + 0.6 * layers / max(1, layers.max())
    axes.scatter(places[:, 0], places[:, 1], s=30, color=[(*to_rgb(BLUE), shade) for shade in shades], linewidth=0)
    for head, place in zip(heads, places, strict=True):
        if head in named:
            axes.annotate(str(head), place, (4, 3), textcoords="offset points", fontsize=8)
    axes.set_title("the same as a map, later layers fuller")
    axes.set_xlabel("two dots lie as far apart as their patterns are, as far as a plane allows", fontsize=8)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.15)
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    axes.spines[:].set(visible=True, color=GRID)


def _write(axes: Axes, distances: np.ndarray) -> None:
    """The distances of pairs, like `.35`."""
    for (row, column), distance in np.ndenumerate(distances):
        if row != column and distance == distance:
            text = f"{distance:.2f}".removeprefix("0")
            axes.text(column, row, text, ha="center", va="center", fontsize=8, in_layout=False)


def _frame(axes: Axes, row: int, column: int, size: int, color: str) -> None:
    """A frame around a square of cells, the first of which is given."""
    style: dict[str, Any] = {"facecolor": "none", "edgecolor": color, "linewidth": 1.6, "clip_on": False}
    axes.add_patch(Rectangle((column - 0.5, row - 0.5), size, size, **style))
