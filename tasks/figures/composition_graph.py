"""Which heads compose: a graph of heads by layer, to be read upwards like the residual stream."""

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from pandas import DataFrame, Series

from tasks.figures.labels import labels_with_rows
from tasks.figures.sentences import listed, models_left_out
from tasks.figures.style import (
    CARD,
    INDUCTION,
    INK,
    KINDS,
    MUTED,
    PREVIOUS_TOKEN,
    WIDTH,
    Palette,
    Picture,
)
from tasks.study_results import StudyResults

QUERIES = ("compositions", "head_scores")
MAX_GRAPHS = 3  # kinds of model that get one
MAX_EDGES = 24
PARTS = {"Q": "queries", "K": "keys", "V": "values"}
PORTS = {"Q": -0.55, "K": 0.0, "V": 0.55}  # where edges enter a head from below, in its radii
ROLES = {"induction": INDUCTION, "previous token": PREVIOUS_TOKEN}
POINTS = 72  # in an inch
NODE = 13  # points of radius at most
THINNEST, THICKEST = 0.8, 6.0  # points

Head = tuple[int, int]  # layer, head


def composition_graph(results: StudyResults, palette: Palette) -> list[Picture]:
    """The pairs of heads that compose significantly, in the best kinds of model."""
    pairs, scores = (results.frame(query) for query in QUERIES)
    labels = labels_with_rows(results, pairs)
    if not labels:
        return [Picture("composition", "No picture: no model has two layers whose composition was measured.", QUERIES)]
    shown = labels[:MAX_GRAPHS]
    pictures = []
    for i, label in enumerate(shown, start=1):
        ways = pairs[pairs.label == label]
        composed = ways[ways.significant.eq(True)]
        sentence = _sentence(label, len(ways), composed)
        if i == len(shown):
            sentence += models_left_out(len(labels) - i)
        with_role = scores[(scores.label == label) & scores.role.isin(list(ROLES))]
        roles = {(row.layer, row.head): ROLES[row.role] for row in with_role.itertuples()}
        figure = None if composed.empty else _graph(label, ways, composed.head(MAX_EDGES), roles)
        pictures.append(Picture(f"composition_{i}", sentence, QUERIES, figure))
    return pictures


def _sentence(label: str, n_ways: int, composed: DataFrame) -> str:
    if composed.empty:
        return f"No picture: of the {n_ways} ways in which heads of {label} can compose, none is significant."
    strongest, by_kind = composed.iloc[0], composed.kind.value_counts()
    found = listed([f"{by_kind[kind]} through {part}" for kind, part in PARTS.items() if kind in by_kind])
    is_are = "is" if len(composed) == 1 else "are"
    not_drawn = len(composed) - MAX_EDGES
    return (
        f"Of the {n_ways} ways in which heads of {label} can compose, {len(composed)} {is_are} significant: {found}. "
        f"The strongest is {strongest.writer} into the {PARTS[strongest.kind]} of {strongest.reader} "
        f"(score {strongest.score:.3f}, z = {strongest.z:.1f})."
        + (f" The {not_drawn} weakest are not drawn." if not_drawn > 0 else "")
    )


def _graph(label: str, ways: DataFrame, edges: DataFrame, roles: Mapping[Head, str]) -> Figure:
    """Heads side by side, layers one above the other."""
    heads = sorted({*zip(ways.writer_layer, ways.writer_head), *zip(ways.reader_layer, ways.reader_head)})
    n_layers, n_heads = (1 + max(place) for place in zip(*heads))
    width = min(WIDTH, max(6, 1.5 * n_heads))
    figure = Figure(figsize=(width, 1.1 + min(1.4, 5.6 / n_layers) * (n_layers - 0.4)), layout="constrained")
    axes = figure.subplots()
    radius = min(NODE, 0.38 * WIDTH * POINTS / n_heads)
    widths = THINNEST + (THICKEST - THINNEST) * (edges.z / edges.z.max()).clip(lower=0)
    port = radius / POINTS * n_heads / width  # a radius in heads
    for edge, linewidth in zip(edges.itertuples(), widths, strict=True):
        start, end = (edge.writer_head, edge.writer_layer), (edge.reader_head + port * PORTS[edge.kind], edge.reader_layer)
        bend = 0.55 * (edge.reader_layer - edge.writer_layer)
        curve = [start, (start[0], start[1] + bend), (end[0], end[1] - bend), end]
        path = Path(curve, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        axes.add_patch(PathPatch(path, facecolor="none", edgecolor=KINDS[edge.kind], linewidth=linewidth, zorder=2))
    for layer, head in heads:
        color = roles.get((layer, head))
        axes.scatter(
            head,
            layer,
            s=(2 * radius) ** 2,
            facecolor=CARD,
            edgecolor=color or MUTED,
            linewidth=1.8 if color else 1,
            zorder=3,
        )
        axes.text(head, layer, f"H{head}", ha="center", va="center", fontsize=min(9, 0.7 * radius), color=INK, zorder=4)
    axes.set_title(label)
    axes.set_xlim(-0.6, n_heads - 0.4)
    axes.set_ylim(-0.4, n_layers - 0.6)
    axes.set_xticks([])
    axes.set_yticks(range(n_layers), [f"L{layer}" for layer in range(n_layers)])
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    _legend(figure, edges.kind, {f"z = {edges.z.iloc[i]:.0f}": widths.iloc[i] for i in (0, -1)}, roles)
    return figure


def _legend(figure: Figure, kinds: Series, widths: Mapping[str, float], roles: Mapping[Head, str]) -> None:
    lines = {
        f"into {PARTS[kind]} ({kind})": Line2D([], [], color=KINDS[kind], linewidth=3)
        for kind in KINDS
        if kind in set(kinds)
    }
    lines |= {z: Line2D([], [], color=MUTED, linewidth=width) for z, width in widths.items()}
    node = {"marker": "o", "linestyle": "", "markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.8}
    lines |= {
        f"{role.replace(' ', '-')} head": Line2D([], [], **node, markeredgecolor=ROLES[role])
        for role in ROLES
        if ROLES[role] in roles.values()
    }
    figure.legend(lines.values(), lines, loc="outside upper left", ncols=4, columnspacing=1.4)
