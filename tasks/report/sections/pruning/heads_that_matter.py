"""What more heads bring, and how many of them can be removed."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from headstream.tasks.report.figures.style import DASHED, MUTED, SERIES, WIDTH
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import not_drawn
from headstream.tasks.results.study_results import StudyResults

_NAME = "heads_that_matter"
_COLORS = SERIES[1:5]  # one for each setting that is drawn


def heads_that_matter(results: StudyResults) -> list[Picture]:
    """Loss and removable heads over the number of heads; nothing where no models differ in that alone."""
    groups = results.frame(_NAME)
    groups = groups[groups.n_head_counts > 1]
    if groups.empty:
        return []
    by_setting = list(groups.groupby("setting", sort=False))
    drawn = list(zip(by_setting, _COLORS, strict=False))
    is_pruned = bool(groups.within_1_percent_median.notna().any())
    figure = Figure((WIDTH, 3.5))
    (losses, *removable) = figure.subplots(1, 1 + is_pruned, squeeze=False)[0]
    for (setting, of_setting), color in drawn:
        _draw(losses, of_setting, "validation_loss_nats", color=color, label=setting or "all models")
        _bars(losses, of_setting, color)
    losses.set_title("validation loss, nats per token")
    losses.set_xscale("log", base=2)
    counts = sorted(set(groups.total_heads.astype(int)))
    losses.set_xticks(counts, counts)
    losses.xaxis.minorticks_off()
    losses.set_xlabel("heads in all layers")
    figure.legend(*losses.get_legend_handles_labels(), loc="outside upper left", ncols=3)
    middle, thin = "means", ""
    for axes in removable:
        for (_, of_setting), color in drawn:
            _draw(axes, of_setting, "within_1_percent", color=color)
            _draw(axes, of_setting, "within_5_percent", color=color, linestyle=DASHED, markerfacecolor="none")
        axes.axline((0, 0), slope=1, color=MUTED, linewidth=0.8)
        axes.set_title("removable heads at 1 % more loss, dashed: 5 %")
        axes.set(xlim=(0, 1.05 * groups.total_heads.max()), ylim=(0, 1.05 * groups.total_heads.max()))
        axes.set_xlabel("heads in all layers")
        middle, thin = "means (left) and medians (right)", " The thin line is where every head could be removed."
    dots = f"Dots are seeds and lines join their {middle}; bars are 95 % intervals of means.{thin}"
    others = not_drawn(len(by_setting) - len(_COLORS), "setting", "with fewer numbers of heads")
    look = "What more heads bring, seen by the loss (lower is better), and how many of them the model can do without."
    return [Picture(_NAME, f"{dots}{others}", (_NAME,), figure, look)]


def _draw(axes: Axes, groups: DataFrame, name: str, **style: Any) -> None:
    """A mean or median over the number of heads, and a dot for each seed."""
    middle = groups[f"{name}_mean" if f"{name}_mean" in groups else f"{name}_median"]
    (line,) = axes.plot(groups.total_heads, middle, marker="", **style)
    seeds = groups[["total_heads", f"{name}_values"]].explode(f"{name}_values").dropna()  # not measured, it has none
    dots: dict[str, Any] = {"color": line.get_color(), "markerfacecolor": line.get_markerfacecolor()}
    axes.plot(seeds.total_heads, seeds[f"{name}_values"].astype(float), linestyle="", marker="o", **dots)


def _bars(axes: Axes, groups: DataFrame, color: str) -> None:
    """Intervals of mean losses, of groups of three seeds or more."""
    mean, error_bar = groups.validation_loss_nats_mean, groups.validation_loss_nats_ci95.astype(float)
    axes.errorbar(groups.total_heads, mean, yerr=error_bar, fmt="none", color=color, elinewidth=1, capsize=2.5)
