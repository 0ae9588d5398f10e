"""Figures with a picture for each of the best kinds of model, and which those are."""

from collections.abc import Callable, Iterable

from matplotlib.figure import Figure
from pandas import DataFrame

from headstream.tasks.report.model_choice import best_label_of_each_depth, labels_best_first
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import models_left_out
from headstream.tasks.results.study_results import StudyResults

MAX_MODELS = 3


def best_models(results: StudyResults, present: Iterable[str]) -> tuple[list[str], int]:
    """Of the kinds of model present, the best of any depth, best first; and how many more there are."""
    labels = labels_best_first(results, present)
    return labels[:MAX_MODELS], len(labels[MAX_MODELS:])


def picture_each(
    results: StudyResults,
    name: str,
    rows: DataFrame,
    queries: tuple[str, ...],
    why_none: str,
    draw: Callable[[str, DataFrame], tuple[str, Figure | None]],
    look: str,
    choose: Callable[[StudyResults, Iterable[str]], tuple[list[str], int]] = best_label_of_each_depth,
) -> list[Picture]:
    """What `draw` makes of each label's rows: a sentence, maybe a figure. The first says how many are left out."""
    shown, n_more = choose(results, rows.label)
    if not shown:
        return [Picture(name, f"No picture: {why_none}.", queries)]
    drawn = [draw(label, rows[rows.label == label]) for label in shown]
    drawn[0] = drawn[0][0] + models_left_out(n_more), drawn[0][1]
    return [
        Picture(f"{name}_{i}", sentence, queries, figure, look, folded=label)
        for i, (label, (sentence, figure)) in enumerate(zip(shown, drawn, strict=True), start=1)
    ]
