"""The circuit of each behaviour as a drawing: layers upward, edges by what they enter, as wide as their share."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from pandas import DataFrame

from headstream.models.nodes import MLP, Head, KeyValueGroup, Node, Terminal, parse_node
from headstream.tasks.prompts.shipped_prompts import REPEATS
from headstream.tasks.report.figures.by_model import best_models
from headstream.tasks.report.figures.style import CARD, DASHED, KIND_COLORS, MUTED, WIDTH, as_map, panel
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import counted, not_drawn
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed

_QUERIES = ("behaviour_edges", "behaviours")
_LOOK = "Read upwards: who reads whom while the model does it; the wider a line, the more is lost without it."
MAX_DRAWN_EDGES = 30
_PITCH = 0.85  # inches between levels
_PORTS = {"Q": -0.16, "K": 0.0, "V": 0.16}  # where edges enter a head from below, in inches
_WORDS = {"Q": "into queries", "K": "into keys", "V": "into values", "in": "the whole input"}

_SIDES = {"Q": "queries", "K": "keys", "V": "values"}

Places = Mapping[Node, tuple[float, float]]


def behaviour_circuit(results: StudyResults) -> list[Picture]:
    """A drawing for each prompt set, of the best kind of model that can do it."""
    edges, about = (results.frame(query) for query in _QUERIES)
    pictures = []
    for prompts, own in edges.groupby("prompts", sort=True):
        (label, *_), _ = best_models(results, own.label)
        row = about[(about.prompts == prompts) & (about.model == label)].iloc[0]
        drawn = own[own.label == label]
        name = f"behaviour_circuit_{prompts}"
        sentence = _sentence(str(prompts), label, drawn, row)
        if prompts == REPEATS:
            sentence += _beside_composition(drawn, results.rows("induction_circuits"), label)
        picture = Picture(name, sentence, _QUERIES, _graph(f"{prompts}: {label}", drawn.head(MAX_DRAWN_EDGES)), _LOOK)
        pictures.append(picture)
    if not pictures:
        return [Picture("behaviour_circuit", "No picture: no model was shown to do what a prompt set asks.", _QUERIES)]
    return pictures


def _sentence(prompts: str, label: str, edges: DataFrame, about: Any) -> str:
    sure = edges[edges.surely_in]
    first = listed([f"{_named(edge)} ({edge.share:.2f})" for edge in sure.head(3).itertuples()]) if len(sure) else ""
    told = f"; of the whole difference, the largest carry: {first}" if first else ""
    return (
        f"On {prompts}, {about.edges_for_nine_tenths} edges of {label} make {about.these_make:.2f} of the difference "
        f"between the prompts, on pairs that they were not found on. {counted(len(sure), 'edge')} "
        f"{'is' if len(sure) == 1 else 'are'} surely in{told}. CMD is {about.cmd:.3f}, that of random circuits "
        f"{about.cmd_of_random:.3f}.{not_drawn(len(edges) - MAX_DRAWN_EDGES, 'edge', 'with smaller shares')}"
    )


def _beside_composition(edges: DataFrame, circuits: Sequence[Mapping[str, Any]], label: str) -> str:
    """Whether patching finds the same writers of the induction head as composition and removal, or which not."""
    circuit = next((row for row in circuits if row["label"] == label and row["is_circuit"]), None)
    if circuit is None:
        return ""
    into = edges[(edges.reader == circuit["reader"]) & (edges.port == circuit["kind"]) & (edges.writer != "embedding")]
    patched, composed = {*into.writer}, {*circuit["writers"]}
    what = f"the {_SIDES[circuit['kind']]} of {circuit['reader']}"
    if patched == composed:
        return f" The induction circuit has the same writers of {what}: {listed(sorted(composed))}."
    parts = [
        f"{listed(sorted(only))} only {how}"
        for only, how in ((patched - composed, "patching finds"), (composed - patched, "the induction circuit has"))
        if only
    ]
    return f" Of the writers of {what}, {' and '.join(parts)}."


def _named(edge: Any) -> str:
    port = "" if edge.port == "in" else f"{edge.port} of "
    return f"{edge.writer} to {port}{edge.reader}"


def _graph(title: str, edges: DataFrame) -> Figure:
    """Only nodes that an edge joins; those of one height side by side."""
    nodes = {parse_node(label) for label in (*edges.writer, *edges.reader)}
    levels: dict[tuple[float, int], list[Node]] = {}
    for node in sorted(nodes, key=lambda node: (_level(node), node if isinstance(node, tuple) else ())):
        levels.setdefault(_level(node), []).append(node)
    widest = max(map(len, levels.values()))
    width = min(WIDTH, max(4.6, 1.1 * widest + 1.2))
    places: dict[Node, tuple[float, float]] = {}
    for height, level in enumerate(sorted(levels)):
        own = levels[level]
        for i, node in enumerate(own):
            places[node] = (i + 0.5) * width / len(own), float(height)  # in inches, and in levels
    figure, axes = panel(0.7 + _PITCH * len(levels), width)
    most = max(edges.share.abs().max(), 1e-9)
    for edge in edges.itertuples():
        _draw_edge(axes, places, edge, 0.8 + 6 * abs(edge.share) / most)
    for node, place in places.items():
        box = {"boxstyle": "round,pad=0.45", "facecolor": CARD, "edgecolor": MUTED}
        axes.text(*place, str(node), ha="center", va="center", fontsize=8.5, zorder=4, bbox=box)
    axes.set_title(title)
    axes.set_xlim(0, width)
    axes.set_ylim(-0.5, len(levels) - 0.5)
    axes.set_xticks([])
    axes.set_yticks([])
    as_map(axes)
    there = [port for port in _WORDS if port in set(edges.port)]
    lines = {_WORDS[port]: Line2D([], [], color=_color(port), linewidth=3) for port in there}
    if (edges.share < 0).any():
        lines["works against it"] = Line2D([], [], color=MUTED, linewidth=2, linestyle=DASHED)
    figure.legend(list(lines.values()), list(lines), loc="outside upper left", ncols=4)
    return figure


def _level(node: Node) -> tuple[float, int]:
    """The height of a node: its layer, and within it keys and values that are shared, heads, feed-forward layers."""
    if isinstance(node, Terminal):
        return (float("inf"), 0) if node is Terminal.LOGITS else (-1.0, 0)
    within = 0 if isinstance(node, KeyValueGroup) else 1 if isinstance(node, Head) else 2
    assert isinstance(node, KeyValueGroup | Head | MLP)
    return float(node.layer), within


def _draw_edge(axes: Axes, places: Places, edge: Any, width: float) -> None:
    start, end = places[parse_node(edge.writer)], places[parse_node(edge.reader)]
    tip = end[0] + _PORTS.get(edge.port, 0.0), end[1] - 0.3
    rise = 0.5 * (tip[1] - start[1])
    bow = 0.45 * (end[1] - start[1] > 1) * (1 if abs(tip[0] - start[0]) < 0.3 else 0)  # past the nodes between
    curve = [start, (start[0] + bow, start[1] + rise), (tip[0] + bow, tip[1] - rise), tip]
    path = Path(curve, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    color, style = _color(edge.port), DASHED if edge.share < 0 else "solid"
    axes.add_patch(PathPatch(path, facecolor="none", edgecolor=color, linewidth=width, linestyle=style, zorder=2))
    axes.plot(*tip, "^", color=color, markersize=5 + width / 2, zorder=2.5)


def _color(port: str) -> str:
    return KIND_COLORS.get(port, MUTED)
