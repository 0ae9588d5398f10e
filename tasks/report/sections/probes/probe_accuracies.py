"""What a linear probe reads from heads: how often it is right, beside what is right without the head."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame

from headstream.tasks.report.figures.by_model import FigureOfEachModel
from headstream.tasks.report.figures.style import BLUE, GREY, INK, MUTED, OLIVE, ORANGE, name_places, panel
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import counted
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed
from headstream.tasks.words.markdown import MISSING

_ROW = 0.36  # inches
_FIGURE = FigureOfEachModel(
    "probes",
    ("probes",),
    look=(
        "Bars to the right are what the best head tells beyond the best baseline; bars to the left, where a baseline"
        " does better: a guess, or a probe of random labels."
    ),
    why_none="no model has heads that were probed",
)


def probe_accuracies(results: StudyResults) -> list[Picture]:
    """By how much probes of every head, of the best and of the stream beat the best of three baselines, by task."""

    def draw(label: str, found: DataFrame) -> tuple[str, Figure]:
        best = found[found.is_best & found["head"].notna()].sort_values("gain", ascending=False, kind="stable")
        return _sentence(label, found, best), _bars(label, found, best)

    found = results.frame("probes").dropna(subset=["gain"])
    has_best = (found.is_best & found["head"].notna()).groupby(found.label).transform("any")
    return _FIGURE.pictures(results, found[has_best], draw)


def _sentence(label: str, found: DataFrame, best: DataFrame) -> str:
    """For which tasks the best head's gain is above 0, the largest in numbers, and the stream beside it."""
    of_tasks, above, below = counted(len(best), "task"), best[best.gain_low > 0], best[best.gain_high < 0]
    top = next((above if len(above) else best).itertuples())
    if above.empty:
        said = (
            f"No head of {label} is shown to tell more than the baselines: of {of_tasks} the largest gain of a best "
            f"head is that of {top.site} in {top.task}, {_gain(top)}, and no interval is above 0."
        )
    else:
        in_stream = found[found.is_best & found["head"].isna() & (found.task == top.task)].itertuples()
        stream = "".join(f"; the best place in the stream, {place.site}, gains {_gain(place)}" for place in in_stream)
        said = (
            f"In the model that stands for {label}, the best head tells {listed(list(above.task))} better than the "
            f"baselines, of {of_tasks}. Of {top.task} a probe of {top.site} is right for {_share(top.accuracy)} of "
            f"tokens, {_gain(top)} more than the best baseline, {_share(top.accuracy - top.gain)}{stream}."
        )
    return said + (f" Of {listed(list(below.task))} the best head tells less than a baseline." if len(below) else "")


def _share(value: float) -> str:
    return f"{value:.2f}" if value == value else MISSING


def _gain(row: Any) -> str:
    """A gain with its interval: `0.05 (0.02 to 0.08)`."""
    interval = f" ({row.gain_low:z.2f} to {row.gain_high:z.2f})" if row.gain_low == row.gain_low else ""
    return f"{row.gain:z.2f}{interval}"


def _bars(label: str, found: DataFrame, best: DataFrame) -> Figure:
    """A row for each task, that with the largest gain first: a bar for the best head, faint dots for all heads."""
    tasks = list(best.task)
    figure, axes = panel(1.3 + _ROW * len(tasks))
    place = {task: row for row, task in enumerate(tasks)}
    heads = found[found["head"].notna()]
    stream = found[found["head"].isna() & found.is_best]
    colors = np.where(best.gain_low > 0, BLUE, np.where(best.gain_high < 0, ORANGE, GREY))
    axes.barh(range(len(tasks)), best.gain, height=0.6, color=colors, alpha=0.75)
    errors = np.array([best.gain - best.gain_low, best.gain_high - best.gain]).clip(min=0)
    axes.errorbar(best.gain, range(len(tasks)), xerr=errors, fmt="none", ecolor=INK, elinewidth=0.9)
    axes.plot(heads.gain, heads.task.map(place), "o", color=MUTED, alpha=0.5, markersize=3, label="every head")
    axes.plot(stream.gain, stream.task.map(place), "D", color=OLIVE, markersize=5, label="best place in the stream")
    axes.axvline(0, color=MUTED, linewidth=0.8)
    axes.set_title(f"{label}: share of tokens labelled right, beyond the best baseline")
    axes.set_xlabel("bars: best head with its 95 % interval, blue if that is above 0, orange below, grey neither")
    axes.set_ylim(len(tasks) - 0.5, -0.6)
    name_places(axes.yaxis, [task.replace("_", " ") for task in tasks])
    right = axes.twinx()
    right.set_ylim(axes.get_ylim())
    name_places(right.yaxis, [f"{row.site}: {_gain(row)}" for row in best.itertuples()])
    right.spines[:].set_visible(False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    return figure
