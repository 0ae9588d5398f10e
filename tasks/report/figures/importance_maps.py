"""Which heads matter: every method's scores side by side, and how well methods agree."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame, isna

from tasks.report.figures.by_model import picture_each
from tasks.report.figures.score_panels import score_panels
from tasks.report.figures.sentences import counted
from tasks.report.figures.style import BLUE, INK, MUTED, Picture, name_places, panel
from tasks.results.study_results import StudyResults

REFERENCE = "ablation_mean"
N_COLUMNS = 4
ROW = 0.26  # inches


def importance_maps(results: StudyResults) -> list[Picture]:
    """Each method's normalised scores of each head, a map for each of the best kinds of model."""

    def draw(label: str, scores: DataFrame) -> tuple[str, Figure]:
        by_head = scores.pivot(index=["layer", "head"], columns="method", values="normalised")
        return _sentence(label, scores), score_panels(label, by_head.reset_index(), list(by_head.columns), N_COLUMNS)

    name, queries = "importance", ("importance",)
    return picture_each(results, name, results.frame(name), queries, "no model has heads that were scored", draw)


def importance_agreement(results: StudyResults) -> list[Picture]:
    """Rank correlation of each method with mean ablation, the best on top."""
    name, queries = "importance_agreement", ("importance_agreement",)
    methods = results.frame(name)
    if methods.empty:
        why = f"no model has three heads scored by {REFERENCE} and another method"
        return [Picture(name, f"No picture: {why}.", queries)]
    return [Picture(name, _agreement(methods), queries, _dots(methods))]


def _dots(methods: DataFrame) -> Figure:
    figure, axes = panel(0.7 + ROW * len(methods))
    places = np.arange(len(methods))
    axes.hlines(places, 0, methods.spearman, color=BLUE, linewidth=1.2, alpha=0.5)
    style: dict[str, Any] = {"fmt": "o", "color": BLUE, "ecolor": INK, "elinewidth": 1, "capsize": 2.5}
    axes.errorbar(methods.spearman, places, xerr=methods.spearman_ci95, **style)
    axes.axvline(0, color=MUTED, linewidth=0.8)
    name_places(axes.yaxis, list(methods.method))
    axes.set_ylim(len(methods) - 0.4, -0.6)
    lowest = (methods.spearman - methods.spearman_ci95.fillna(0)).min()
    axes.set_xlim(max(-1, min(0, lowest)) - 0.05, 1.02)
    axes.set_xlabel(f"rank correlation with {REFERENCE}")
    return figure


def _sentence(label: str, scores: DataFrame) -> str:
    """Which heads matter most, and how many methods say so."""
    known = scores.dropna(subset=["score"]).sort_values("score", ascending=False, kind="stable")
    reference = known[known.method == REFERENCE]
    if reference.empty:
        return f"Which heads of {label} matter most is unknown: {REFERENCE} was not measured."
    best = reference.head_label.iloc[0]
    then = f", then {reference.head_label.iloc[1]}" if len(reference) > 1 else ""
    firsts = known[known.method != REFERENCE].groupby("method").head_label.first()
    n_same = (firsts == best).sum()
    others = f"; {n_same} of {counted(len(firsts), 'other method')} also rank {best} first" if len(firsts) else ""
    return f"By {REFERENCE}, the head of {label} that matters most is {best}{then}{others}."


def _agreement(methods: DataFrame) -> str:
    best, worst = (
        (method.method, f"{method.spearman:.2f}" + ("" if isna(bar := method.spearman_ci95) else f" ± {bar:.2f}"))
        for method in (methods.iloc[0], methods.iloc[-1])
    )
    n = int(methods.n_models.max())
    over = f"Over {counted(n, 'model')} with three heads or more"
    most = f"the ranking of heads by {best[0]} agrees most with that by {REFERENCE} (rank correlation {best[1]})"
    least = f", and that by {worst[0]} least ({worst[1]})" if len(methods) > 1 else ""
    return f"{over}, {most}{least}.{'' if n > 1 else ' A single model gives no error bars.'}"
