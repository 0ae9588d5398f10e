"""By how much the loss rises as more heads are pruned, by procedure and by the score that orders them."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from pandas import DataFrame

from headstream.tasks.report.figures.by_model import FigureOfEachModel
from headstream.tasks.report.figures.style import AMBER, BRICK, DASHED, DOTTED, INDIGO, MUTED, OLIVE, WIDTH
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.pruning_words import HOW, pruning_line
from headstream.tasks.report.sentences import counted
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed

_FIGURE = FigureOfEachModel(
    "pruning",
    ("pruning_curves", "heads_that_matter"),
    look=(
        "As heads are removed one after another, the loss rises: the longer a line stays low, the fewer heads are"
        " needed."
    ),
    why_none="no model has heads that were pruned",
)
BARS = (0.01, 0.05)  # those of the columns within_1_percent and within_5_percent
TICKS = (-0.5, -0.1, -0.01, 0, *BARS, 0.2, 0.5, 1, 2, 5, 20)
BEST = ("iterative", "ablation_mean")  # drawn beside the procedures of one score
PROCEDURES = {  # the last on top
    "gates": ("gates", OLIVE),
    "one_shot": ("one shot", BRICK),
    "iterative": ("iterative", INDIGO),
    "iterative_retrain": ("retrained in between", AMBER),
}
_METHODS = {  # that have a colour of their own
    "ablation_mean": BRICK,
    "michel_paper": INDIGO,
    "weight_norm": OLIVE,
    "attention_variance": AMBER,
}


def pruning_curves(results: StudyResults) -> list[Picture]:
    """Rise of the loss over the number of heads pruned, beside that of random orders."""

    def draw(label: str, curves: DataFrame) -> tuple[str, Figure]:
        line = pruning_line(results, label) or f"How many heads of {label} can be removed {HOW} is missing."
        return f"{line} {_compared(curves)} {_bands(curves)}", _panels(label, curves)

    curves = results.frame("pruning_curves")
    return _FIGURE.pictures(results, curves, draw)


def shared_score(curves: DataFrame) -> str:
    """The score by which procedures are compared: that of retraining, which has one alone."""
    retrained = curves[curves.procedure == "iterative_retrain"]
    known = retrained if not retrained.empty else curves[curves.stands_for_procedure & (curves.procedure != "gates")]
    return str(known.order_method.iloc[0]) if not known.empty else BEST[1]


def _compared(curves: DataFrame) -> str:
    """What scoring again and retraining bring at one number of heads, by one score."""
    score = shared_score(curves)
    of_score = curves[curves.order_method == score].pivot_table(
        index="n_pruned", columns="procedure", values="relative_increase_mean"
    )
    both = of_score.reindex(columns=list(PROCEDURES)[1:]).dropna(axis=1, how="all").dropna()
    both = both[both.index > 0]
    if both.empty or both.shape[1] < 2:
        return "Left, by procedure; right, by score."
    n = int(both.index[len(both) // 2 - (len(both) % 2 == 0)])
    told = [f"{100 * share:.1f}\u00a0% {PROCEDURES[str(name)][0]}" for name, share in both.loc[n].items()]
    beside = f" (the indigo dashed line is by {BEST[1]})" if score != BEST[1] else ""
    start = f"Left, procedures are compared by {score}{beside}: without {counted(n, 'head')}, loss is higher by"
    return f"{start} {listed(told)}."


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
    _by_procedure(left, curves)
    _by_score(right, curves[curves.procedure == "one_shot"])
    left.set_title(f"{label}: by procedure, on {shared_score(curves)}")
    left.set_ylabel("rise of the loss")
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
    """A line for each procedure by the shared score, and the one that costs least."""
    score = shared_score(curves)
    best = curves[(curves.procedure == BEST[0]) & (curves.order_method == BEST[1])]
    if score != BEST[1] and not best.empty:
        _line(axes, best, with_seeds=True, color=INDIGO, linestyle=DASHED, label=", ".join(BEST))
    for procedure, (name, color) in PROCEDURES.items():
        method = "gate" if procedure == "gates" else score
        curve = curves[(curves.procedure == procedure) & (curves.order_method == method)]
        if not curve.empty:
            with_seeds = (procedure, score) == BEST
            _line(axes, curve, with_seeds=with_seeds, color=color, marker="o", label=name)


def _by_score(axes: Axes, curves: DataFrame) -> None:
    """A line for each score; thin and unnamed if it has no colour."""
    by_method = {str(method): curve for method, curve in curves.groupby("order_method")}
    for i, method in enumerate(method for method in by_method if method not in _METHODS):
        label = "" if i else "other scores"
        _line(axes, by_method[method], color=MUTED, linewidth=0.8, alpha=0.5, label=label)
    for method, color in _METHODS.items():
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
    axes.set_ylim(min(-0.003, 1.2 * lowest), next((tick for tick in TICKS if tick >= max(highest, 0.2)), 1.3 * highest))
    axes.yaxis.set_major_locator(FixedLocator(TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    for panel in axes.figure.axes:
        for bar in BARS:
            panel.axhline(bar, color=MUTED, linewidth=1, linestyle=DOTTED)
