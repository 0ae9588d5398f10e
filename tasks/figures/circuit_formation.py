"""How the induction circuit forms: both of its heads, what joins them and the loss, on one axis of tokens."""

from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from tasks.figures.labels import labels_with_rows
from tasks.figures.phase_changes import mark, strongest_change
from tasks.figures.sentences import models_left_out
from tasks.figures.style import INDUCTION, INK, KINDS, LINE_LENGTH, MUTED, PREVIOUS_TOKEN, WIDTH, Palette, Picture
from tasks.figures.style import scale_by_tokens
from tasks.markdown import compact
from tasks.study_results import StudyResults

NAME, QUERIES = "circuit_formation", ("circuit_formation", "phase_changes")
MAX_COLUMNS = 3  # kinds of model
SCORES = {
    "previous_token": ("previous_token of the head that is read", PREVIOUS_TOKEN, "solid"),
    "prefix_matching": ("prefix_matching of the head that reads", INDUCTION, (0, (1.5, 1.5))),
    "induction_random_period": ("its induction_random_period", INDUCTION, "solid"),
}
SMALLEST_RISE = 0.1  # of a score that is worth a date


def circuit_formation(results: StudyResults, palette: Palette) -> list[Picture]:
    """Over tokens, the previous-token head, its K-composition with the induction head, that head and the loss."""
    heads = results.frame("circuit_formation")
    labels = labels_with_rows(results, heads)
    if not labels:
        return [Picture(NAME, "No picture: no model has a pair of heads that could be an induction circuit.", QUERIES)]
    shown = labels[:MAX_COLUMNS]
    figure = Figure(figsize=(WIDTH, 5.2), layout="constrained")
    columns = figure.subplots(3, len(shown), sharex=True, sharey="row", squeeze=False, height_ratios=(3, 2, 2)).T
    change = strongest_change(results, "prefix_matching")
    for (top, middle, bottom), label in zip(columns, shown, strict=True):
        of_model = heads[heads.label == label]
        _draw(top, middle, bottom, of_model)
        for axes in (top, middle, bottom):
            scale_by_tokens(axes)
            mark(axes, change if change and change.label == label else None)
            axes.label_outer()
    ...
