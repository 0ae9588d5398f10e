"""Which heads matter: every method's scores side by side, and how well methods agree."""

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame

from headstream.tasks.report.figures.by_model import FigureOfEachModel, best_models
from headstream.tasks.report.figures.score_panels import score_panels
from headstream.tasks.report.figures.style import BLUE, INK, MUTED, name_places, panel
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import extremes
from headstream.tasks.results.study_results import StudyResults

REFERENCE = "ablation_mean"
_ABLATION = "ablation_"  # how the names of methods begin that are nearly the same measure
_OTHERS = "that aren't ablations"
_N_COLUMNS = 4
_ROW = 0.26  # inches
MIN_DOTS = 3  # seeds that dots can show the spread of
_UNIT = "score / root of the layer's sum of squares"
_MAPS = FigureOfEachModel(
    "importance",
    ("importance",),
    look=(
        "Each map shows all heads by one way of scoring them, full colour for the heads that it says matter most; the"
        f" ways that agree best with taking heads out ({REFERENCE}) come first."
    ),
    why_none="no model has heads that were scored",
)
_AGREEMENT = FigureOfEachModel(
    "importance_agreement",
    ("importance_agreement",),
    look="The farther right a dot, the more that score puts heads in the same order as taking each of them out does.",
    why_none=f"no model has eight heads scored by {REFERENCE} and another method",
    choose=best_models,
)


def importance_maps(results: StudyResults) -> list[Picture]:
    """Each method's scores of each head, normalised by layer, a map for each of the best kinds of model."""

    def draw(label: str, scores: DataFrame) -> tuple[str, Figure]:
        by_head = scores.pivot(index=["layer", "head"], columns="method", values="normalised")
        agreement = scores.pivot(index=["layer", "head"], columns="method", values="score").rank().corr().get(REFERENCE)
        methods = list(by_head.columns)
        if agreement is not None:
            methods.sort(key=lambda method: (method != REFERENCE, -agreement.fillna(-2)[method]))
        titles = {method: method for method in methods}
        return _sentence(label, scores), score_panels(label, by_head.reset_index(), titles, _N_COLUMNS, _UNIT)

    return _MAPS.pictures(results, results.frame("importance"), draw)


def importance_agreement(results: StudyResults) -> list[Picture]:
    """Rank correlation of each method with mean ablation, a picture a kind of model, the highest mean on top."""

    def draw(label: str, found: DataFrame) -> tuple[str, Figure]:
        return _agreement(label, found), _dots(label, found)

    return _AGREEMENT.pictures(results, results.frame("importance_agreement"), draw)


def _dots(label: str, found: DataFrame) -> Figure:
    """A row for each method: a large dot for the mean and, if seeds are more than a few, a small one for each."""
    means = found.groupby("method").spearman.mean().sort_values(ascending=False, kind="stable")
    figure, axes = panel(0.7 + _ROW * len(means))
    places = np.arange(len(means))
    axes.hlines(places, 0, means, color=BLUE, linewidth=1.2, alpha=0.5)
    axes.plot(means, places, "o", color=BLUE, markersize=6)
    has_dots = found.seed.nunique() >= MIN_DOTS
    if has_dots:
        axes.plot(found.spearman, found.method.map(list(means.index).index), "o", color=INK, markersize=2.5)
    axes.axvline(0, color=MUTED, linewidth=0.8)
    name_places(axes.yaxis, list(means.index))
    axes.set_ylim(len(means) - 0.4, -0.6)
    axes.set_xlim(min(0, found.spearman.min()) - 0.05, 1.02)
    axes.set_xlabel(f"{label}: rank correlation with {REFERENCE}{'; small dots are seeds' * has_dots}")
    return figure


def _sentence(label: str, scores: DataFrame) -> str:
    """Which heads matter most, and how many methods say so."""
    known = scores.dropna(subset=["score"]).sort_values("score", ascending=False, kind="stable")
    reference = known[known.method == REFERENCE]
    if reference.empty:
        return f"Which heads of {label} matter most is unknown: {REFERENCE} was not measured."
    best = reference.head_label.iloc[0]
    firsts = known[~known.method.str.startswith(_ABLATION)].groupby("method").head_label.first()
    n_same = (firsts == best).sum()
    others = f"; it is also ranked first by {n_same} of {len(firsts)} scores {_OTHERS}" if len(firsts) else ""
    return f"By {REFERENCE}, the head of {label} that matters most is {best}{others}."


def _agreement(label: str, found: DataFrame) -> str:
    """Which rankings agree most and least with mean ablation, other ablations apart, and whether that can be told."""
    others = found[~found.method.str.startswith(_ABLATION)]
    methods = {str(name): dict(zip(of.seed, of.spearman, strict=True)) for name, of in others.groupby("method")}
    n_heads, n_seeds = found.n_heads.max(), found.seed.nunique()
    over = f", mean of {n_seeds} seeds," if n_seeds > 1 else ""
    return (
        f"In {label}, the rank correlation of scores {_OTHERS} with {REFERENCE} over {n_heads} heads{over} is "
        f"{extremes(methods)}. That ablations agree with one another says little: they are nearly the same measure."
    )
