"""Figures with a picture for each of the best kinds of model."""

from collections.abc import Callable

from matplotlib.figure import Figure
from pandas import DataFrame

from tasks.report.figures.sentences import models_left_out
from tasks.report.figures.style import Picture
from tasks.report.model_choice import best_label_of_each_depth
from tasks.results.study_results import StudyResults


def picture_each(
    results: StudyResults,
    name: str,
    rows: DataFrame,
    queries: tuple[str, ...],
    why_none: str,
    draw: Callable[[str, DataFrame], tuple[str, Figure | None]],
) -> list[Picture]:
    """What `draw` makes of each label's rows: a sentence, maybe a figure. The last one says how many are left out."""
    shown, n_more = best_label_of_each_depth(results, rows.label)
    if not shown:
        return [Picture(name, f"No picture: {why_none}.", queries)]
    pictures = []
    for i, label in enumerate(shown, start=1):
        sentence, figure = draw(label, rows[rows.label == label])
        if label == shown[-1]:
            sentence += models_left_out(n_more)
        pictures.append(Picture(f"{name}_{i}", sentence, queries, figure))
    return pictures
