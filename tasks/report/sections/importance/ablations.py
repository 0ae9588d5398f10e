"""By how much the loss rises without each head, for each way to ablate it."""

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame

from headstream.tasks.report.figures.by_model import FigureOfEachModel
from headstream.tasks.report.figures.style import AMBER, BLUE, GREY, INK, MUTED, name_places, panel
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import counted, not_drawn
from headstream.tasks.results.study_results import StudyResults

MAX_HEADS = 16
_FIGURE = FigureOfEachModel(
    "ablations",
    ("ablations",),
    look="Each group of bars is a head: the taller, the worse the model predicts without it.",
    why_none="no model has heads that were ablated",
)
_COLORS = {"zero": GREY, "mean": BLUE, "resample": AMBER}
_BAR = 0.27  # of the place between two heads


def ablations(results: StudyResults) -> list[Picture]:
    """Rise of the loss if zero, the mean or another text's output replaces a head's output, with its interval."""

    def draw(label: str, effects: DataFrame) -> tuple[str, Figure]:
        largest = effects.groupby("head_label", sort=False).loss_effect_nats.max()
        shown = largest[largest.rank(ascending=False, method="first") <= MAX_HEADS].index
        sentence = _sentence(label, effects) + not_drawn(len(largest) - len(shown), "head", "with smaller effects")
        return sentence, _bars(label, effects[effects.head_label.isin(shown)], list(shown))

    effects = results.frame("ablations").dropna(subset=["loss_effect_nats"])
    effects = effects[effects.method.isin(list(_COLORS))]
    return _FIGURE.pictures(results, effects, draw)


def _sentence(label: str, effects: DataFrame) -> str:
    """Which head costs most if its mean replaces it, and how many cost nothing clear."""
    by_mean = effects[effects.method == "mean"]
    if by_mean.empty:
        return f"The effect of replacing heads of {label} by their mean is missing."
    worst = by_mean.loc[by_mean.loss_effect_nats.idxmax()]
    head, effect = worst.head_label, f"{worst.loss_effect_nats:.3f} nats"
    start = f"Of the heads of {label}, {head} costs most if its mean replaces its output: {effect}"
    known = by_mean.dropna(subset=["ci_low_nats"])
    if known.empty or worst.isna().ci_low_nats:
        return f"{start}; intervals are missing."
    n_idle = (known.ci_low_nats <= 0).sum()
    n_close = (known.ci_high_nats >= worst.ci_low_nats).sum() - 1
    close = (
        f"intervals of {counted(n_close, 'other head')} overlap with its own"
        if n_close
        else "no other interval overlaps"
    )
    idle = f"For {n_idle} of {counted(len(known), 'head')}, the 95 % interval of the cost reaches down to 0 or below."
    if not n_idle:
        idle = f"The 95 % intervals of all {len(known)} lie above 0." if len(known) > 1 else "That lies above 0."
    return f"{start} ({worst.ci_low_nats:.3f} to {worst.ci_high_nats:.3f}; {close}). {idle}"


def _bars(label: str, effects: DataFrame, heads: list[str]) -> Figure:
    figure, axes = panel(3.2)
    methods = [method for method in _COLORS if method in set(effects.method)]
    for i, method in enumerate(methods):
        of_method = effects[effects.method == method]
        places = of_method.head_label.map(heads.index) + (i - (len(methods) - 1) / 2) * _BAR
        effect = of_method.loss_effect_nats
        errors = np.array([effect - of_method.ci_low_nats, of_method.ci_high_nats - effect]).clip(min=0)
        axes.bar(places, effect, width=_BAR, color=_COLORS[method], alpha=0.75, label=method)
        axes.errorbar(places, effect, yerr=errors, fmt="none", ecolor=INK, elinewidth=0.9)
    axes.axhline(0, color=MUTED, linewidth=0.8)
    name_places(axes.xaxis, heads)
    axes.set_title(f"{label}: rise of the loss without each head, nats")
    axes.set_xlim(-0.6, max(len(heads), 4) - 0.4)
    figure.legend(loc="outside upper left", ncols=3)
    return figure
