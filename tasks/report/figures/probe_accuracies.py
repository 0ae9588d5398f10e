"""What a linear probe reads from heads and from the stream: its selectivity as a map of tasks and places."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from tasks.markdown import MISSING
from tasks.report.figures.by_model import picture_each
from tasks.report.figures.style import BLUE, INK, MUTED, Picture, as_map, panel, tint
from tasks.results.study_results import StudyResults

MAX_NUMBERED = 19  # places side by side that have room for numbers
MAX_UPRIGHT = 16  # places whose names fit side by side
SMALLEST_FULL = 0.05  # selectivity that has the full colour at least
ROW = 0.3  # inches


def probe_accuracies(results: StudyResults) -> list[Picture]:
    """The selectivity of probes at every place, and the accuracy of the best beside that of the commonest label."""

    def draw(label: str, found: DataFrame) -> tuple[str, Figure]:
        return _sentence(label, found), _map(label, found)

    found = results.frame("probes").dropna(subset=["selectivity"])
    found = found[found.groupby("label")["head"].transform("count") > 0]  # the stream alone is no picture
    return picture_each(results, "probes", found, ("probes",), "no model has heads that were probed", draw)


def _sentence(label: str, found: DataFrame) -> str:
    """What the best head reveals, and how much of the same the stream does."""
    of_heads = found[found["head"].notna()]
    best = of_heads.loc[of_heads.selectivity.idxmax()]
    in_stream = found[found["head"].isna() & (found.task == best.task)]
    stream = ""
    if not in_stream.empty:
        place = in_stream.loc[in_stream.selectivity.idxmax()]
        stream = f"; for the best place in the stream, {place.site}, that difference is {place.selectivity:.2f}"
    return (
        f"What heads of {label} reveal best is {best.task.replace('_', ' ')}: a probe of {best.site} is right for "
        f"{_share(best.accuracy)} of tokens, {best.selectivity:.2f} more than with random labels{stream}. "
        f"Always guessing the commonest label is right for {_share(best.baseline_accuracy)}."
    )


def _map(label: str, found: DataFrame) -> Figure:
    """A row for each task, the best first; a column for each head and then for each place in the stream."""
    places = found.assign(in_stream=found["head"].isna()).sort_values(["in_stream", "layer", "head"])
    sites = list(dict.fromkeys(places.site))
    n_heads = places.site[~places.in_stream].nunique()
    by_task = found.groupby("task")[["selectivity", "accuracy", "baseline_accuracy"]].max()
    by_task = by_task.sort_values("selectivity", ascending=False, kind="stable")
    values = found.pivot(index="task", columns="site", values="selectivity").loc[by_task.index, sites].to_numpy()
    full = max(by_task.selectivity.max(), SMALLEST_FULL)
    figure, axes = panel(0.9 + ROW * len(by_task))
    axes.imshow(tint(values / full, BLUE), interpolation="none", aspect="auto")
    if len(sites) <= MAX_NUMBERED:
        _write(axes, values)
    axes.axvline(n_heads - 0.5, color=INK, linewidth=1)
    axes.set_title(f"{label}: selectivity, from 0 (no colour) to {full:.2f}")
    axes.set_xticks(range(len(sites)), sites, rotation=90 if len(sites) > MAX_UPRIGHT else 0)
    axes.set_yticks(range(len(by_task)), [task.replace("_", " ") for task in by_task.index])
    right = axes.twinx()
    right.set_ylim(axes.get_ylim())
    accuracies = zip(by_task.baseline_accuracy, by_task.accuracy, strict=True)
    right.set_yticks(range(len(by_task)), [" → ".join(map(_share, pair)) for pair in accuracies])
    axes.set_title("accuracy: commonest label → best", loc="right", fontsize=9, fontweight="normal", color=MUTED)
    as_map(axes, right)
    return figure


def _share(value: float) -> str:
    return f"{value:.2f}" if value == value else MISSING


def _write(axes: Axes, values: np.ndarray) -> None:
    """Selectivities, like `.35`."""
    for (row, column), value in np.ndenumerate(values):
        text = MISSING if np.isnan(value) else f"{value:z.2f}".replace("0.", ".", 1)
        axes.text(column, row, text, ha="center", va="center", fontsize=8)
