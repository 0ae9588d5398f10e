"""What the loss is worth without each head."""

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame

from tasks.report.figures.by_model import picture_each
from tasks.report.figures.sentences import counted
from tasks.report.figures.style import INK, KINDS, MUTED, SCORE, WIDTH, Palette, Picture
from tasks.results.study_results import StudyResults

QUERIES = ("ablations",)
MAX_HEADS = 16
METHODS = {"zero": KINDS["K"], "mean": SCORE, "resample": KINDS["V"]}
BAR = 0.27  # of the place between two heads


def ablations(results: StudyResults, palette: Palette) -> list[Picture]:
    """By how much the loss rises if zero, the mean or another text's output takes a head's place."""

    def draw(label: str, effects: DataFrame) -> tuple[str, Figure]:
        largest = effects.groupby("head_label", sort=False).loss_effect_nats.max()
        shown = largest[largest.rank(ascending=False, method="first") <= MAX_HEADS].index
        n_more = len(largest) - len(shown)
        not_drawn = f" The {n_more} heads that cost least are not drawn." if n_more else ""
        figure = _bars(label, effects[effects.head_label.isin(shown)], list(shown))
        return f"{_sentence(label, effects)}{not_drawn}", figure

    effects = results.frame("ablations").dropna(subset=["loss_effect_nats"])
    effects = effects[effects.method.isin(list(METHODS))]
    return picture_each(results, "ablations", effects, QUERIES, "no model has heads that were ablated", draw)


def _sentence(label: str, effects: DataFrame) -> str:
    """Which head costs most by the mean, and how many cost nothing that can be told from 0."""
    by_mean = effects[effects.method == "mean"]
    if by_mean.empty:
        return f"What the mean in place of a head of {label} does is missing."
    worst = by_mean.loc[by_mean.loss_effect_nats.idxmax()]
    known = by_mean.dropna(subset=["ci_low_nats"])
    interval = "" if known.empty else f" ({worst.ci_low_nats:.3f} to {worst.ci_high_nats:.3f})"
    start = f"With the mean in its place, {worst.head_label} of {label} costs most: {worst.loss_effect_nats:.3f} nats"
    if known.empty:
        return f"{start}; intervals are missing."
    n_idle = (known.ci_low_nats <= 0).sum()
    return f"{start}{interval}; {n_idle} of {counted(len(known), 'head')} cost nothing that can be told from 0."


def _bars(label: str, effects: DataFrame, heads: list[str]) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    axes = figure.subplots()
    methods = [method for method in METHODS if method in set(effects.method)]
    for i, method in enumerate(methods):
        of_method = effects[effects.method == method]
        places = of_method.head_label.map(heads.index) + (i - (len(methods) - 1) / 2) * BAR
        errors = np.array(
            [
                of_method.loss_effect_nats - of_method.ci_low_nats,
                of_method.ci_high_nats - of_method.loss_effect_nats,
            ]
        ).clip(min=0)
        axes.bar(places, of_method.loss_effect_nats, width=BAR, color=METHODS[method], alpha=0.75, label=method)
        axes.errorbar(places, of_method.loss_effect_nats, yerr=errors, fmt="none", ecolor=INK, elinewidth=0.9)
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.set_xticks(range(len(heads)), heads)
    axes.tick_params(axis="x", length=0, labelcolor=INK)
    axes.set_title(f"{label}: by how much the loss rises without a head, nats")
    axes.grid(axis="x", visible=False)
    axes.spines["bottom"].set_visible(False)
    axes.set_xlim(-0.6, max(len(heads), 4) - 0.4)
    figure.legend(loc="outside upper left", ncols=3, columnspacing=1.4)
    return figure
