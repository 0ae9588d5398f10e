"""Eigenvalues of heads' circuits on the complex plane: who copies, and who looks for the query's own token."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from pandas import DataFrame

from tasks.figures.labels import labels_with_rows
from tasks.figures.sentences import counted, listed, models_left_out
from tasks.figures.style import GRID, INK, KINDS, MUTED, SCORE, WIDTH, Palette, Picture
from tasks.markdown import MISSING
from tasks.study_results import StudyResults

QUERIES = ("eigenvalues", "head_scores")
MAX_PICTURES = 3  # kinds of model that get one
MAX_HEADS = 8  # side by side
CLEARLY = 0.5  # score, -1..1, from which a sentence names a head
COLORS = {"OV": KINDS["V"], "QK": SCORE, "K-composed": KINDS["K"]}
SIDE = 1.3  # inches of a panel at most
PITCH = 2.5  # radii between two circles
MARGIN = 0.9  # inches for the circuits' names

Scores = Mapping[tuple[str, str], float]  # of a circuit of a head


def eigenvalues(results: StudyResults, palette: Palette) -> list[Picture]:
    """The spectra of each head's circuits, in the best kinds of model."""
    found, heads = (results.frame(query) for query in QUERIES)
    labels = labels_with_rows(results, found)
    if not labels:
        return [Picture("eigenvalues", "No picture: no model has heads whose eigenvalues were computed.", QUERIES)]
    shown, pictures = labels[:MAX_PICTURES], []
    with_role = heads[heads.role.notna() & (heads.role != "other")]
    for i, label in enumerate(shown, start=1):
        spectra = found[found.label == label]
        scores = spectra.groupby(["circuit", "head_label"])[["real", "imaginary"]].apply(eigenvalue_score).to_dict()
        telling = _most_telling(scores, set(with_role[with_role.label == label].head_label))
        sentence = _sentence(label, scores)
        not_drawn = spectra.head_label.nunique() - len(telling)
        if not_drawn:
            sentence += f" {counted(not_drawn, 'head')} without a role or with scores nearer to 0 are not drawn."
        if i == len(shown):
            sentence += models_left_out(len(labels) - i)
        pictures.append(Picture(f"eigenvalues_{i}", sentence, QUERIES, _planes(label, spectra, telling, scores)))
    return pictures


def eigenvalue_score(spectrum: DataFrame) -> float:
    """Sum of eigenvalues over sum of their sizes, -1..1; NaN if all are 0."""
    size = np.hypot(spectrum.real, spectrum.imaginary).sum()
    return float(spectrum.real.sum() / size) if size else np.nan


def _most_telling(scores: Scores, with_role: set[str]) -> list[str]:
    """Heads worth drawing, in their order: first those with a role, then those whose scores are farthest from 0."""
    farthest: dict[str, float] = {}
    for (_, head), score in scores.items():
        farthest[head] = max(farthest.get(head, 0.0), np.nan_to_num(abs(score)))
    best = sorted(farthest, key=lambda head: (head not in with_role, -farthest[head], head))[:MAX_HEADS]
    return sorted(best, key=_place)


def _place(head: str) -> tuple[int, ...]:
    return tuple(map(int, head[1:].split("H")))


def _sentence(label: str, scores: Scores) -> str:
    """Which heads copy and which match, by the scores that are written below the spectra."""
    of_circuit = {name: {head: s for (circuit, head), s in scores.items() if circuit == name} for name in COLORS}
    sentence = f"In {label}, OV copies in {_clear(of_circuit['OV'])}; QK looks for the query's own token in "
    sentence += _clear(of_circuit["QK"])
    if of_circuit["K-composed"]:
        sentence += f"; with keys that read one earlier head alone, it does in {_clear(of_circuit['K-composed'])}"
    return f"{sentence}."


def _clear(scores: Mapping[str, float]) -> str:
    """The heads that score enough or, if none does, the nearest."""
    known = {head: score for head, score in scores.items() if score == score}
    if not known:
        return "heads whose score is missing"
    named = [f"{head} ({score:.2f})" for head, score in known.items() if score >= CLEARLY]
    best = max(known, key=known.__getitem__)
    return listed(named) if named else f"no head (at most {known[best]:.2f}, {best})"


def _planes(label: str, spectra: DataFrame, heads: list[str], scores: Scores) -> Figure:
    """A row for each circuit, a column for each head; the largest eigenvalue of each spectrum is on a circle."""
    circuits = [circuit for circuit in COLORS if circuit in set(spectra.circuit)]
    side = min(SIDE, (WIDTH - MARGIN) / len(heads))
    figure = Figure(figsize=(MARGIN + side * len(heads), 0.7 + side * len(circuits)), layout="constrained")
    figure.suptitle(label, x=0.012, ha="left", fontsize=11, fontweight="bold")
    axes = figure.subplots()
    for (circuit, head), spectrum in spectra.groupby(["circuit", "head_label"]):
        if head in heads:
            place = PITCH * heads.index(head), -PITCH * circuits.index(circuit)
            _plane(axes, place, spectrum, COLORS[circuit], scores[circuit, head])
    axes.set_aspect("equal")
    axes.set_xlim(-PITCH / 2, PITCH * (len(heads) - 0.5))
    axes.set_ylim(-PITCH * (len(circuits) - 0.5), PITCH / 2)
    axes.set_xticks([PITCH * i for i in range(len(heads))], heads)
    axes.set_yticks([-PITCH * i for i in range(len(circuits))], circuits)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelcolor=INK)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    return figure


def _plane(axes: Axes, centre: tuple[float, float], spectrum: DataFrame, color: str, score: float) -> None:
    """One spectrum around a place, its score to the lower right."""
    x, y = centre
    size = np.hypot(spectrum.real, spectrum.imaginary).max() or 1
    axes.add_patch(Circle(centre, 1, facecolor="none", edgecolor=GRID, linewidth=0.7, zorder=1))
    axes.plot(
        [x - 1, x + 1, np.nan, x, x], [y, y, np.nan, y - 1, y + 1], color=GRID, linewidth=0.7, marker="", zorder=1
    )
    axes.scatter(x + spectrum.real / size, y + spectrum.imaginary / size, s=9, color=color, alpha=0.75, linewidth=0)
    text = MISSING if np.isnan(score) else f"{score:.2f}"
    axes.text(x + 1.15, y - 1.2, text, ha="right", va="bottom", fontsize=9)
    if pd.notna(writer := spectrum.writer.iloc[0]):
        axes.text(x - 1.15, y + 1.2, f"via {writer}", va="top", fontsize=8, color=MUTED)
