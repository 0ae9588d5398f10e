"""By how much the loss rises as more heads are pruned, by procedure and by the score that orders them."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from pandas import DataFrame

from tasks.report.figures.by_model import picture_each
from tasks.report.figures.style import BLUE, DOTTED, GREEN, MUTED, ORANGE, PURPLE, WIDTH, Picture
from tasks.report.pruning_words import HOW, pruning_line
from tasks.results.study_results import StudyResults

QUERIES = ("pruning_curves", "pruned_heads")
LOOK = (
    "As heads are removed one after another, the loss rises: the longer a line stays low, the fewer heads are needed."
)
BARS = (0.01, 0.05)  # those of the columns within_1_percent and within_5_percent
TICKS = (-0.5, -0.1, -0.01, 0, *BARS, 0.2, 1, 5, 20)
PROCEDURES = {  # the last on top
    "one_shot": ("one shot", ORANGE),
    "iterative_retrain": ("retrained", GREEN),
    "gates": ("gates", PURPLE),
    "iterative": ("iterative", BLUE),
}
METHODS = {  # that have a colour of their own
    "ablation_mean": ORANGE,
    "michel_paper": BLUE,
    "weight_norm": GREEN,
    "attention_variance": PURPLE,
}


def pruning_curves(results: StudyResults) -> list[Picture]:
    """Rise of the loss over the number of heads pruned, beside that of random orders."""

    def draw(label: str, curves: DataFrame) -> tuple[str, Figure]:
        line = pruning_line(results, label) or f"How many heads of {label} can be removed {HOW} is missing."
        return f"{line} {_bands(curves)}", _panels(label, curves)

    curves = results.frame("pruning_curves")
    return picture_each(results, "pruning", curves, QUERIES, "no model has heads that were pruned", draw, LOOK)


def _bands(curves: DataFrame) -> str:
    """What the bands around lines are."""
    random = "The grey band spans all random orders. " if "random" in set(curves.procedure) else ""
    if curves.relative_increase_ci95.isna().all():
        return f"{random}Under three seeds, means have no interval."
    return (
        f"{random}Coloured bands are 95 % intervals over seeds, of iterative pruning and of one shot by ablation_mean."
    )


def _panels(label: str, curves: DataFrame) -> Figure:
    figure = Figure((WIDTH, 4.4))
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes in (left, right):
        _random(axes, curves[curves.procedure == "random"])
    _by_procedure(left, curves[curves.stands_for_procedure])
    _by_score(right, curves[curves.procedure == "one_shot"])
    left.set_title(f"{label}: rise of the loss, by procedure")
    right.set_title("one shot, by score")
    _scale(left, curves.relative_increase_mean.min(), curves.relative_increase_mean.max())
    for axes in (left, right):
        axes.legend(loc="upper left", bbox_to_anchor=(-0.02, -0.17), ncols=2, fontsize=9, columnspacing=1.2)
        axes.set_xlabel("heads pruned")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def _random(axes: Axes, curve: DataFrame) -> None:
    """All random orders as a band, and their mean."""
    low, high = curve.relative_increase_lowest, curve.relative_increase_highest
    axes.fill_between(curve.n_pruned, low, high, color=MUTED, alpha=0.15, linewidth=0)
    if not curve.empty:
        _line(axes, curve, color=MUTED, linestyle=(0, (5, 2)), label="random orders, mean")


def _by_procedure(axes: Axes, curves: DataFrame) -> None:
    for procedure, (name, color) in PROCEDURES.items():
        curve = curves[curves.procedure == procedure]
        if not curve.empty:
            method = curve.order_method.iloc[0]
            label = f"{name}, {method}" if method != "gate" else name
            _line(axes, curve, with_seeds=procedure == "iterative", color=color, marker="o", label=label)


def _by_score(axes: Axes, curves: DataFrame) -> None:
    """A line for each score; thin and unnamed if it has no colour."""
    by_method = {str(method): curve for method, curve in curves.groupby("order_method")}
    for i, method in enumerate(method for method in by_method if method not in METHODS):
        label = "" if i else "other scores"
        _line(axes, by_method[method], color=MUTED, linewidth=0.8, alpha=0.5, label=label)
    for method, color in METHODS.items():
        if method in by_method:
            with_seeds = method == "ablation_mean"
            _line(axes, by_method[method], with_seeds=with_seeds, color=color, marker="o", label=method)


def _line(axes: Axes, curve: DataFrame, with_seeds: bool = False, **style: Any) -> None:
    """A curve and its interval over seeds, which one line of a panel has: several would hide each other."""
    mean, error_bar = curve.relative_increase_mean, curve.relative_increase_ci95
    axes.plot(curve.n_pruned, mean, **style)
    if with_seeds:
        band = {"color": style["color"], "alpha": 0.2, "linewidth": 0}
        axes.fill_between(curve.n_pruned, mean - error_bar, mean + error_bar, **band)


def _scale(axes: Axes, lowest: float, highest: float) -> None:
    """Linear up to 1 % and logarithmic beyond, with the two bars marked."""
    axes.set_yscale("symlog", linthresh=BARS[0], linscale=0.7)
    axes.set_ylim(min(-0.003, 1.2 * lowest), 1.3 * max(highest, 1.5 * BARS[1]))
    axes.yaxis.set_major_locator(FixedLocator(TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    for panel in axes.figure.axes:
        for bar in BARS:
            panel.axhline(bar, color=MUTED, linewidth=1, linestyle=DOTTED)
