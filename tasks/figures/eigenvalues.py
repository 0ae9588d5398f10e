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
from tasks.study_results import StudyResults

QUERIES = ("eigenvalues", "head_scores")
MAX_PICTURES = 3  # kinds of model that get one
MAX_HEADS = 8  # side by side
CLEARLY = 0.5  # score, -1..1, from which a sentence names a head
COLORS = {"OV": KINDS["V"], "QK": SCORE, "K-composed": KINDS["K"]}
SIDE = 1.3  # inches of a panel at most
MARGIN = 0.75  # inches for the circuits' names

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
        sentence = _sentence(label, spectra, scores)
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


def _sentence(label: str, spectra: DataFrame, scores: Scores) -> str:
    """Which heads copy and which match, by the scores that the panels show."""
    by_circuit = {circuit: {h: s for (c, h), s in scores.items() if c == circuit} for circuit in COLORS}
    sentences = [f"{_clear('OV copies', by_circuit['OV'])} in {label}."]
    if by_circuit["QK"]:
        sentences.append(f"{_clear('QK looks for the query’s own token', by_circuit['QK'])}.")
    if by_circuit["K-composed"]:
        sentences.append(f"{_clear('Keys that read one earlier head alone do', by_circuit['K-composed'])}.")
    return " ".join(sentences)


def _clear(what: str, scores: Mapping[str, float]) -> str:
    named = [f"{head} ({score:.2f})" for head, score in scores.items() if score >= CLEARLY]
    best = max(scores, key=lambda head: np.nan_to_num(scores[head], nan=-2))
    return f"{what} in {listed(named)}" if named else f"{what} in no head, the highest score is {scores[best]:.2f} of {best}"


def _planes(label: str, spectra: DataFrame, heads: list[str], scores: Scores) -> Figure:
    """A row for each circuit, a column for each head; the largest eigenvalue of a panel is on the circle."""
    circuits = [circuit for circuit in COLORS if circuit in set(spectra.circuit)]
    side = min(SIDE, (WIDTH - MARGIN) / len(heads))
    figure = Figure(figsize=(MARGIN + side * len(heads), 0.6 + side * len(circuits)), layout="constrained")
    figure.suptitle(label, x=0.012, ha="left", fontsize=11, fontweight="bold")
    panels = figure.subplots(len(circuits), len(heads), squeeze=False)
    for circuit, row in zip(circuits, panels, strict=True):
        for head, axes in zip(heads, row, strict=True):
            spectrum = spectra[(spectra.circuit == circuit) & (spectra.head_label == head)]
            _plane(axes, spectrum, COLORS[circuit], scores.get((circuit, head)))
            if circuit == circuits[0]:
                axes.set_title(head, fontsize=9, loc="center")
        row[0].set_ylabel(circuit, fontsize=9, color=INK)
    return figure


def _plane(axes: Axes, spectrum: DataFrame, color: str, score: float | None) -> None:
    axes.set_xlim(-1.15, 1.15)
    axes.set_ylim(-1.15, 1.15)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[:].set_visible(False)
    if spectrum.empty or score is None:
        return
    axes.axhline(0, color=GRID, linewidth=0.7)
    axes.axvline(0, color=GRID, linewidth=0.7)
    axes.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor=GRID, linewidth=0.7))
    size = np.hypot(spectrum.real, spectrum.imaginary).max() or 1
    axes.scatter(spectrum.real / size, spectrum.imaginary / size, s=9, color=color, alpha=0.75, linewidth=0)
    axes.text(1.15, -1.15, "missing" if np.isnan(score) else f"{score:.2f}", ha="right", va="bottom", fontsize=9)
    if pd.notna(writer := spectrum.writer.iloc[0]):
        axes.text(-1.15, 1.15, f"by {writer}", ha="left", va="top", fontsize=8, color=MUTED)
