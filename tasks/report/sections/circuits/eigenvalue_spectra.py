"""Eigenvalues of heads' circuits on the complex plane: positive ones are a sign of copying and of matching."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from pandas import DataFrame

from headstream.tasks.report.figures.by_model import FigureOfEachModel
from headstream.tasks.report.figures.style import BLUE, GREEN, GRID, MUTED, ORANGE, WIDTH, as_map, headline, panel
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import not_drawn
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed
from headstream.tasks.words.markdown import MISSING

_FIGURE = FigureOfEachModel(
    "eigenvalues",
    ("eigenvalues", "head_scores"),
    look=(
        "Dots to the right of a circle: in the row OV, the head makes what it looks at more likely, a sign of copying"
        " and no proof; in QK, it looks for copies of its own token. The number at a circle is the sum of its"
        " eigenvalues over the sum of their sizes: 1 if all lie to the right, -1 if to the left. K-composed is QK with"
        " keys that read only the named earlier head, the one whose composition is strongest; of a circuit's writers it"
        " needn't be one."
    ),
    why_none="no model has heads whose eigenvalues were computed",
)
MAX_SPECTRA = 8  # side by side
_COLORS = {"OV": GREEN, "QK": BLUE, "K-composed": ORANGE}
PITCH = 2.5  # radii between the centres of two circles
_SIDE = 1.3  # inches between them at most
MARGIN = 0.9  # inches for the circuits' names

_Scores = Mapping[tuple[str, str], float]  # of a circuit of a head


def eigenvalue_spectra(results: StudyResults) -> list[Picture]:
    """The spectra of the full OV and QK circuits of each head, scored."""
    found, heads = (results.frame(query) for query in _FIGURE.queries)
    with_role = heads[heads.role.notna() & (heads.role != "other")]

    def draw(label: str, spectra: DataFrame) -> tuple[str, Figure]:
        scores = spectra.groupby(["circuit", "head_label"]).eigenvalue_score.first().to_dict()
        telling = _most_telling(scores, set(with_role[with_role.label == label].head_label))
        n_more = spectra.head_label.nunique() - len(telling)
        sentence = _sentence(label, spectra) + not_drawn(n_more, "head", "without a role or with scores closer to 0")
        return sentence, _planes(label, spectra, telling, scores)

    return _FIGURE.pictures(results, found, draw)


def _most_telling(scores: _Scores, with_role: set[str]) -> list[str]:
    """The heads worth drawing, layer by layer: those with a role, then those with a score far from 0."""
    farthest: dict[str, float] = {}
    for (_, head), score in scores.items():
        farthest[head] = max(farthest.get(head, 0.0), np.nan_to_num(abs(score)))
    in_order = sorted(farthest, key=lambda head: [int(number) for number in head[1:].split("H")])
    best = sorted(in_order, key=lambda head: (head not in with_role, -farthest[head]))[:MAX_SPECTRA]
    return [head for head in in_order if head in best]


def _sentence(label: str, spectra: DataFrame) -> str:
    """Which heads have the sign of copying or of matching, by the scores that stand below the spectra."""
    heads = spectra.drop_duplicates(["circuit", "head_label"]).sort_values("head_label")
    ov, qk, composed = (heads[heads.circuit == circuit] for circuit in _COLORS)
    through = (
        "" if composed.empty else f"; with keys that read the named earlier head alone, those of {_clear(composed)}"
    )
    return f"In {label}, eigenvalues are clearly positive in OV of {_clear(ov)}; in QK of {_clear(qk)}{through}."


def _clear(heads: DataFrame) -> str:
    """The heads that score enough or their number; if none does, the one that comes closest."""
    known = heads.dropna(subset="eigenvalue_score")
    if known.empty:
        return "no head with a known score"
    clear = known[known.is_clear.astype(bool)]
    best = known.loc[known.eigenvalue_score.idxmax()]
    if len(clear) > MAX_SPECTRA:
        return f"{len(clear)} heads, most in {best.head_label} ({best.eigenvalue_score:.2f})"
    named = [f"{head} ({score:.2f})" for head, score in zip(clear.head_label, clear.eigenvalue_score, strict=True)]
    return listed(named) or f"no head (at most {best.eigenvalue_score:.2f}, in {best.head_label})"


def _planes(label: str, spectra: DataFrame, heads: list[str], scores: _Scores) -> Figure:
    """A row for each circuit, a column for each head; the largest eigenvalue of each spectrum is on a circle."""
    circuits = [circuit for circuit in _COLORS if circuit in set(spectra.circuit)]
    side = min(_SIDE, (WIDTH - MARGIN) / len(heads))
    figure, axes = panel(0.7 + side * len(circuits), MARGIN + side * len(heads))
    headline(figure, label)
    for (circuit, head), spectrum in spectra.groupby(["circuit", "head_label"]):
        if head in heads:
            centre = PITCH * heads.index(head), -PITCH * circuits.index(circuit)
            _draw(axes, centre, spectrum, _COLORS[circuit], scores[circuit, head])
    note = "number: sum of eigenvalues / sum of their sizes; the largest lies on the circle"
    axes.set_xlabel(note, loc="left", fontsize=9)
    axes.set_aspect("equal")
    axes.set_xlim(-PITCH / 2, PITCH * (len(heads) - 0.5))
    axes.set_ylim(-PITCH * (len(circuits) - 0.5), PITCH / 2)
    axes.set_xticks([PITCH * i for i in range(len(heads))], heads)
    axes.set_yticks([-PITCH * i for i in range(len(circuits))], circuits)
    axes.xaxis.tick_top()
    as_map(axes)
    return figure


def _draw(axes: Axes, centre: tuple[float, float], spectrum: DataFrame, color: str, score: float) -> None:
    """One spectrum around a place, its score to the lower right."""
    x, y = centre
    size = np.hypot(spectrum.real, spectrum.imaginary).max() or 1
    axes.add_patch(Circle(centre, 1, facecolor="none", edgecolor=GRID, linewidth=0.7, zorder=1))
    axes.plot([x - 1, x + 1], [y, y], color=GRID, linewidth=0.7, zorder=1)
    axes.plot([x, x], [y - 1, y + 1], color=GRID, linewidth=0.7, zorder=1)
    axes.scatter(x + spectrum.real / size, y + spectrum.imaginary / size, s=9, color=color, alpha=0.75, linewidth=0)
    text = MISSING if np.isnan(score) else f"{round(score, 2) + 0.0:.2f}"  # 0 has no sign
    axes.text(x + 1.15, y - 1.2, text, ha="right", va="bottom", fontsize=9)
    if pd.notna(writer := spectrum.writer.iloc[0]):
        axes.text(x - 1.15, y + 1.2, f"via {writer}", va="top", fontsize=8, color=MUTED)
