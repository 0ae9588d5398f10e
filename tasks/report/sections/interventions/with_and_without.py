"""Curves of the same seeds with and without what was done to them in training: when each forms an induction head."""

from math import ceil
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame, isna

from headstream.tasks.report.figures.phase_changes import scale_by_tokens
from headstream.tasks.report.figures.style import DOTTED, INDIGO, INK, MUTED, WIDTH, wrapped
from headstream.tasks.report.intervention_words import InterventionRow, all_formed, delay_with_interval, in_short_counts
from headstream.tasks.report.pictures import Picture
from headstream.tasks.results.study_results import StudyResults

MAX_PANELS, PANELS_IN_A_ROW = 12, 3
_NOTHING_LATE = "No base has an induction head, so that nothing can be late."
_NAME, _QUERIES = "with_and_without", ("intervention_curves", "interventions")
BASE: dict[str, Any] = {"color": MUTED, "linewidth": 1.2, "linestyle": DOTTED, "marker": ""}
DONE: dict[str, Any] = {"color": INDIGO, "linewidth": 1.5, "marker": ""}


def with_and_without(results: StudyResults) -> list[Picture]:
    """The best head's induction_random_period over tokens: each intervened model, and its base."""
    curves = results.frame("intervention_curves").dropna(subset="score")
    if curves.empty:
        return [Picture(_NAME, "No picture: nothing was done to any model in training.", _QUERIES)]
    shown = [*curves.groupby(["what", "n_layers"], sort=False)][:MAX_PANELS]
    n_more = curves.groupby(["what", "n_layers"]).ngroups - len(shown)
    n_rows = ceil(len(shown) / PANELS_IN_A_ROW)
    figure = Figure((WIDTH, 0.5 + 2.1 * n_rows))
    panels = figure.subplots(n_rows, PANELS_IN_A_ROW, sharex=True, sharey=True, squeeze=False).flatten()
    for axes, ((what, n_layers), of_panel) in zip(panels, shown, strict=False):
        layers = f" ({n_layers} layer{'s' if n_layers > 1 else ''})" if curves.n_layers.nunique() > 1 else ""
        axes.set_title(wrapped(f"{in_short_counts(str(what))}{layers}", PANELS_IN_A_ROW), fontsize=8.5)
        _draw(axes, of_panel)
        scale_by_tokens(axes, None)
        axes.label_outer()
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    for axes in panels[max(0, len(shown) - PANELS_IN_A_ROW) : len(shown)]:
        axes.xaxis.set_tick_params(labelbottom=True)
        axes.set_xlabel("tokens seen")
    panels[0].set_ylim(bottom=0)
    handles = [
        Line2D([], [], **DONE, label="with it, a line a model"),
        Line2D([], [], **BASE, label="the same seed without"),
        Line2D([], [], color=INK, linewidth=0.8, label="where it begins or ends"),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=3)
    figure.supylabel("best head's induction_random_period", color=MUTED)
    more = f" {n_more} more are in the table." if n_more else ""
    look = "Where the solid lines lie to the right of the dotted ones, or below, it was needed to form, or to last."
    return [Picture(_NAME, f"{_sentence(results)}{more}", _QUERIES, figure, look)]


def _draw(axes: Axes, curves: DataFrame) -> None:
    for (is_base, *_), curve in curves.groupby(["is_base", "seed", "model_id"]):
        axes.plot(curve.tokens, curve.score, **(BASE if is_base else DONE))
    for moment in {*curves.from_tokens, *curves.until_tokens}:
        if not isna(moment) and moment:
            axes.axvline(moment, color=INK, linewidth=0.8)


def _sentence(results: StudyResults) -> str:
    """The interventions that delay most and hasten most, with their intervals, and those with which nothing forms."""
    rows = [row for row in results.rows("interventions") if row["formed"] is not None]
    delayed = sorted((row for row in rows if row["delay"] is not None), key=lambda row: row["delay"])
    parts = [_delay(row) for row in ([delayed[-1], delayed[0]] if len(delayed) > 1 else delayed)]
    none = [in_short_counts(row["what"]) for row in rows if row["formed"].startswith("0 of ")]
    if none:
        parts.append(f"with none of these does an induction head form within the training: {', '.join(none)}")
    return f"Where something was done, it took: {'; '.join(parts)}." if parts else _NOTHING_LATE


def _delay(row: InterventionRow) -> str:
    formed = "" if all_formed(row) else f", of the {row['formed']} models that form"
    return f"{delay_with_interval(row)} times the tokens with {in_short_counts(row['what'])}{formed}"
