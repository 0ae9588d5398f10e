"""Which heads compose: a graph of heads by layer, to be read upwards like the residual stream."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from pandas import DataFrame, Series

from headstream.models.nodes import Head
from headstream.tasks.report.figures.by_model import FigureOfEachModel
from headstream.tasks.report.figures.style import CARD, KIND_COLORS, MUTED, ROLE_COLORS, WIDTH, as_map, panel
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import not_drawn
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed

Place = tuple[float, float]
_FIGURE = FigureOfEachModel(
    "composition",
    ("compositions", "head_scores"),
    look=(
        "Read upwards: a line joins an earlier head to a later one that reads what it wrote, more than chance explains."
    ),
    why_none="no model has two layers whose composition was measured",
)
MAX_EDGES = 24
MAX_NODES = 64  # of more heads, only those are drawn that an edge joins or that have a role
_PARTS = {"Q": "queries", "K": "keys", "V": "values"}
PORTS = {"Q": -0.55, "K": 0.0, "V": 0.55}  # where edges enter a head from below, in its radii
MAX_PITCH, MIN_FIGURE_WIDTH = 1.3, 5.2  # inches between heads, since far apart they have flat edges; of the figure
POINTS = 72  # in an inch
NODE = 13  # points of radius at most
THINNEST, THICKEST = 0.8, 6.0  # points
_BOWS = (0.0, 0.6, -0.6, 0.3, -0.3, 1.0, -1.0)  # heads by which an edge is drawn aside, the first that avoids others
STRONG = 20  # z that the thickest edge has at least


def composition_graph(results: StudyResults) -> list[Picture]:
    """The pairs of heads that compose significantly, and through what."""
    pairs, scores = (results.frame(query) for query in _FIGURE.queries)
    with_role = scores[scores.role.isin(list(ROLE_COLORS))]

    def draw(label: str, ways: DataFrame) -> tuple[str, Figure | None]:
        every_way = f"the {len(ways):,} ways in which heads of {label} can compose"
        composed = ways[ways.significant.eq(True)]
        if composed.empty:
            return f"No picture: none of {every_way} is significant.", None
        roles = {Head(row.layer, row.head): row.role for row in with_role[with_role.label == label].itertuples()}
        n_heads = ways.reader_layer.max() * ways.groupby("reader_layer").reader_head.nunique().max()
        apart = " Only heads with a line or a role are drawn." if n_heads > MAX_NODES else ""
        return f"{_sentence(every_way, composed)}{apart}", _graph(label, ways, composed.head(MAX_EDGES), roles)

    return _FIGURE.pictures(results, pairs, draw)


def _sentence(every_way: str, composed: DataFrame) -> str:
    best, by_kind = composed.iloc[0], composed.kind.value_counts()
    strongest = (
        f"{best.writer} into the {_PARTS[best.kind]} of {best.reader} (score {best.score:.3f}, z = {best.z:.1f})"
    )
    if len(composed) == 1:
        return f"Of {every_way}, one is significant: {strongest}."
    found = listed([f"{by_kind[kind]} through {part}" for kind, part in _PARTS.items() if kind in by_kind])
    weakest = not_drawn(len(composed) - MAX_EDGES, "other", "with lower z")
    return f"Of {every_way}, {len(composed)} are significant: {found}. The strongest is {strongest}.{weakest}"


def _graph(label: str, ways: DataFrame, edges: DataFrame, roles: Mapping[Head, str]) -> Figure:
    """Heads side by side, layers one above the other; the thicker an edge, the higher its z."""
    every, joined = _heads_of(ways), _heads_of(edges)
    heads = sorted(every if len(every) <= MAX_NODES else joined | roles.keys())
    layers, n_heads = sorted({layer for layer, _ in heads}), 1 + max(head for _, head in heads)
    height_of = {layer: place for place, layer in enumerate(layers)}
    width, pitch = min(WIDTH, max(MIN_FIGURE_WIDTH, MAX_PITCH * n_heads)), min(1.4, max(0.36, 5.6 / len(layers)))
    figure, axes = panel(1.1 + pitch * (len(layers) - 0.4), width)
    radius = min(NODE, 0.38 * width * POINTS / n_heads, 0.3 * pitch * POINTS)
    port = radius / POINTS * n_heads / width  # a radius on the axis of heads
    widths = THINNEST + (THICKEST - THINNEST) * (edges.z / max(edges.z.max(), STRONG)).clip(lower=0)
    for edge, linewidth in zip(edges.itertuples(), widths, strict=True):
        start = edge.writer_head, height_of[edge.writer_layer]
        tip = (radius + 7) / POINTS / pitch  # where an arrow's head begins, below the rim of the head that it enters
        end = edge.reader_head + port * PORTS[edge.kind], height_of[edge.reader_layer] - tip
        between = [(head, height) for layer, head in heads if start[1] < (height := height_of[layer]) < end[1] - 0.1]
        curve = curve_past(start, end, between, 1.3 * port)
        path = Path(curve, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        color = KIND_COLORS[edge.kind]
        axes.add_patch(PathPatch(path, facecolor="none", zorder=2, edgecolor=color, linewidth=linewidth))
        axes.plot(*end, "^", color=color, markersize=7 + linewidth, zorder=2.5)
    for each in heads:
        role = roles.get(each)
        rim = {"edgecolor": ROLE_COLORS[role], "linewidth": 1.8} if role else {"edgecolor": MUTED}
        place = each.head, height_of[each.layer]
        axes.scatter(*place, s=(2 * radius) ** 2, facecolor=CARD, zorder=3, **rim)
        axes.text(*place, f"H{each.head}", ha="center", va="center", fontsize=min(9, 0.7 * radius), zorder=4)
    axes.set_title(label)
    axes.set_xlim(-0.6, n_heads - 0.4)
    axes.set_ylim(-0.35, len(layers) - 0.65)
    axes.set_xticks([])
    axes.set_yticks(range(len(layers)), [f"L{layer}" for layer in layers])
    as_map(axes)
    _legend(figure, edges, widths, [role for role in ROLE_COLORS if role in roles.values()])
    return figure


def curve_past(start: Place, end: Place, nodes: Sequence[Place], radius: float) -> list[Place]:
    """A curve that leaves and enters vertically and runs through no node, as far as bowing to a side avoids them."""
    rise = 0.55 * (end[1] - start[1])
    t = np.linspace(0, 1, 40)[:, None]
    best: tuple[int, list[Place]] | None = None
    for bow in _BOWS:
        curve = [start, (start[0] + bow, start[1] + rise), (end[0] + bow, end[1] - rise), end]
        a, b, c, d = map(np.array, curve)
        points = a * (1 - t) ** 3 + 3 * b * t * (1 - t) ** 2 + 3 * c * t**2 * (1 - t) + d * t**3
        n_hit = sum(bool(abs(np.interp(y, points[:, 1], points[:, 0]) - x) < radius) for x, y in nodes)
        if best is None or n_hit < best[0]:
            best = n_hit, curve
    assert best
    return best[1]


def _heads_of(pairs: DataFrame) -> set[Head]:
    writers = map(Head, pairs.writer_layer, pairs.writer_head)
    readers = map(Head, pairs.reader_layer, pairs.reader_head)
    return {*writers, *readers}


def _legend(figure: Figure, edges: DataFrame, widths: Series, roles: list[str]) -> None:
    lines = {
        f"into {part} ({kind})": Line2D([], [], color=KIND_COLORS[kind], linewidth=3)
        for kind, part in _PARTS.items()
        if kind in set(edges.kind)
    }
    for i in (0, -1):
        lines[f"z = {edges.z.iloc[i]:.0f}"] = Line2D([], [], color=MUTED, linewidth=widths.iloc[i])
    rim: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 9, "markerfacecolor": "none"}
    for role in roles:
        name = f"{role.replace(' ', '-')} head"
        lines[name] = Line2D([], [], color=ROLE_COLORS[role], markeredgewidth=1.8, **rim)
    figure.legend(list(lines.values()), list(lines), loc="outside upper left", ncols=3)
