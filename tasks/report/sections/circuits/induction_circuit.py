"""The circuit that does induction as a drawing: which head reads what, where, with the numbers that show it."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from headstream.models.nodes import Head, parse_node
from headstream.tasks.report.circuit_words import looks_hardest
from headstream.tasks.report.figures.style import (
    CARD,
    GREEN,
    INK,
    KIND_COLORS,
    MUTED,
    PURPLE,
    TEAL,
    as_map,
    headline,
    panel,
)
from headstream.tasks.report.model_choice import labels_best_first
from headstream.tasks.report.pictures import Picture
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed

_NAME, _QUERIES = "induction_circuit", ("induction_circuits",)
_TOKENS = ("…", "A", "B", "…", "A")  # the last is the current one; what is predicted is drawn beside it
EARLIER, FOLLOWER, CURRENT, PREDICTED = 1, 2, 4, 5.35  # their places
BOTTOM, MIDDLE, TOP = 0.0, 1.0, 2.0  # of tokens and of the two heads
MAX_LISTED = 3  # writers below each other, each with its numbers
WHAT = {  # by what of the later head reads the earlier one: where that stands, what it tells, what it attends to
    "K": (FOLLOWER, "“I follow A”", "attends to the token before"),
    "Q": (CURRENT, "“A stood there”", "attends to earlier copies"),
}


def induction_circuit(results: StudyResults) -> list[Picture]:
    """The circuit of the best model that has one: an induction head that depends on its writers."""
    circuits = {row["label"]: row for row in results.rows(_QUERIES[0]) if row["is_circuit"]}
    labels = labels_best_first(results, circuits)
    if not labels:
        return [Picture(_NAME, "No picture: in no model was an induction circuit found.", _QUERIES)]
    circuit = circuits[labels[0]]
    look = (
        "How the model continues “A B … A”: an earlier head leaves a note on what stands where, and a later head reads "
        "the note, looks there, and predicts B."
    )
    return [Picture(_NAME, _sentence(circuit), _QUERIES, _drawing(circuit), look)]


def _sentence(circuit: Mapping[str, Any]) -> str:
    reader, writers = circuit["reader"], listed(circuit["writers"])
    of = f"seed {circuit['seed']} of {circuit['label']}" if circuit["n_models"] > 1 else circuit["label"]
    without, before = circuit["prefix_matching_without"], circuit["prefix_matching"]
    needed = "what happens without that is missing"
    if without is not None and before is not None:
        needed = "without that, its attention to what followed A, where random tokens repeat four times"
        needed += f" (prefix_matching), falls from {before:.2f} to {without:.2f}"
    return f"In {of}, {reader} reads {writers}; {needed}."


def _drawing(circuit: Mapping[str, Any]) -> Figure:
    figure, axes = panel(3.5)
    headline(figure, f"{circuit['label']}: how {circuit['reader']} does {circuit['reader_role']}")
    place, note, attends = WHAT[circuit["kind"]]
    color = KIND_COLORS[circuit["kind"]]
    for x, token in enumerate(_TOKENS):
        _box(axes, x, BOTTOM, token, MUTED if token == "…" else INK)
    axes.text(CURRENT, BOTTOM - 0.36, "current token", ha="center", va="top", color=MUTED, fontsize=9)
    _box(axes, place, MIDDLE, in_rows(circuit["writers"]), TEAL)
    _box(axes, CURRENT, TOP, circuit["reader"], PURPLE)
    _box(axes, PREDICTED, TOP, "B", GREEN, linestyle=(0, (3, 2)))
    _arrow(axes, (EARLIER, BOTTOM), (place, MIDDLE), TEAL, -0.15)
    side: dict[str, Any] = (
        {"ha": "right", "x": place - 0.42} if circuit["kind"] == "K" else {"ha": "left", "x": place + 0.42}
    )
    axes.text(y=MIDDLE, s=f"{attends}\n{_attention(circuit)}", va="center", color=TEAL, fontsize=9, **side)
    if circuit["kind"] == "K":
        _arrow(axes, (place, BOTTOM), (place, MIDDLE), MUTED)
        _arrow(axes, (CURRENT, BOTTOM), (CURRENT, TOP), MUTED)
        axes.text(CURRENT + 0.1, MIDDLE, "“what follows A?”", va="center", color=MUTED, fontsize=9)
    else:
        _arrow(axes, (place, BOTTOM), (place, MIDDLE), MUTED)
        _arrow(axes, (FOLLOWER, BOTTOM), (CURRENT, TOP), MUTED, -0.2)
    _arrow(axes, (place, MIDDLE), (CURRENT, TOP), color, -0.12 if circuit["kind"] == "K" else 0)
    known = [z for z in circuit["writer_z"] if z is not None]
    strength = f", z = {listed([f'{z:.0f}' for z in known])}" if known else ""
    if len(known) > MAX_LISTED:
        strength = f", z from {min(known):.0f} to {max(known):.0f}"
    axes.text(
        place - 0.05 if circuit["kind"] == "K" else place - 0.1,
        (MIDDLE + TOP) / 2 + 0.12,
        f"{note}\n{circuit['kind']}-composition{strength}",
        ha="right",
        va="center",
        color=color,
        fontsize=9,
    )
    _arrow(axes, (CURRENT, TOP), (PREDICTED, TOP), GREEN)
    logit, score = circuit["induction_copying_logit"], circuit["induction_random_period"]
    if score is not None:
        looks = f"{score:.2f} of its attention goes to B, beyond what places earn"
        axes.text(CURRENT, TOP + 0.36, looks, ha="center", color=PURPLE, fontsize=9)
    if logit is not None:
        axes.text(PREDICTED, TOP - 0.36, f"logit of B {logit:+.1f}", ha="center", va="top", color=GREEN, fontsize=9)
    axes.set_xlim(-0.5, 6.1)
    axes.set_ylim(-0.65, 2.6)
    axes.set_xticks([])
    ends = (parse_node(label) for label in (circuit["writers"][0], circuit["reader"]))
    layers = [f"L{head.layer}" for head in ends if isinstance(head, Head)]
    axes.set_yticks([BOTTOM, MIDDLE, TOP], ["tokens", *layers])
    as_map(axes)
    return figure


def _attention(circuit: Mapping[str, Any]) -> str:
    """How much of the writers' attention goes there, a line for each where one looks hardest elsewhere."""
    known = [score for score in circuit["writer_attention"] if score is not None]
    scores = ["?" if score is None else f"{score:.2f}" for score in circuit["writer_attention"]]
    if len(scores) > MAX_LISTED and known:
        return f"({min(known):.2f} to {max(known):.2f} of their attention)"
    if not any(looks_hardest(circuit, offset) for offset in circuit["writer_offsets"]):
        return f"({', '.join(scores)} of its attention)"
    lines = zip(circuit["writers"], scores, circuit["writer_offsets"], strict=False)
    return "\n".join(
        f"{writer}: {score}" + (f", hardest {offset} back" if looks_hardest(circuit, offset) else " of its attention")
        for writer, score, offset in lines
    )


def in_rows(writers: Sequence[str]) -> str:
    """Names below each other or, if they are more, in two columns."""
    if len(writers) <= MAX_LISTED:
        return "\n".join(writers)
    return "\n".join("  ".join(writers[i : i + 2]) for i in range(0, len(writers), 2))


def _box(axes: Axes, x: float, y: float, text: str, color: str, **style: Any) -> None:
    frame = {"boxstyle": "round,pad=0.45", "facecolor": CARD, "edgecolor": color, "linewidth": 1.6, **style}
    axes.text(x, y, text, ha="center", va="center", color=INK, bbox=frame, zorder=3)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], color: str, bend: float = 0) -> None:
    line: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 12, "linewidth": 1.6, "shrinkA": 16, "shrinkB": 19}
    axes.add_patch(FancyArrowPatch(start, end, color=color, connectionstyle=f"arc3,rad={bend}", zorder=2, **line))
